import { ofrepEvaluateFlags, ofrepStream } from "@halyard/contracts";
import type { EvaluationContext } from "@halyard/evaluation";
import { namesTag, type Refusal } from "@halyard/service";
import { readOfrepContext } from "../context/ofrep-context.ts";
import { mayBeNews, parseConfigurationTag } from "../environment/configuration-tag.ts";
import { unknownKey } from "../sdk/by-bearer.ts";
import { commonHeaders } from "../sdk/common-headers.ts";
import { answerRefusal, type Endpoint, type Exchange } from "../sdk/endpoint.ts";
import { taggedHeads } from "../sdk/tagged-heads.ts";
import { answerProblem } from "./answer-problem.ts";
import { type BulkWriter, bulkWriterOf, type StreamOffer } from "./bulk-writer.ts";
import { byEitherHeader } from "./by-either-header.ts";
import { ofrepHeaders } from "./ofrep-headers.ts";
import type { OfrepParts } from "./ofrep-parts.ts";
import { hourOf } from "./stream-tokens.ts";

/** The evaluations of all flags, as the web providers ask for them. */
export function bulkEndpoint(parts: OfrepParts): Endpoint {
  return {
    method: "POST",
    path: ofrepEvaluateFlags.path,
    name,
    authenticate: byEitherHeader(parts),
    respond: (exchange) => respond(parts, exchange),
  };
}

const name = "ofrep_flags";

function respond(parts: OfrepParts, exchange: Exchange): void {
  const context = readOfrepContext(exchange.body);
  if ("errorCode" in context) {
    answerProblem(exchange, 400, context);
    parts.counts.count(name, 400);
    return;
  }
  if (exchange.query === "") answer(parts, exchange, context);
  else answerWhenKnown(parts, exchange, context);
}

/** Waits a moment for the change that a refetch is about, where it has not arrived here yet. */
function answerWhenKnown(parts: OfrepParts, exchange: Exchange, context: EvaluationContext): void {
  const { waiting, configurationTags, directory, now, counts } = parts;
  const { key, query, response, guarded } = exchange;
  const told = parseConfigurationTag(new URLSearchParams(query).get("flagConfigEtag") ?? "");
  const isKnown = () => {
    if (told === undefined) return true;
    const present = configurationTags.of(key.environmentId);
    if (!mayBeNews(told, { present, nowMs: now() })) return true;
    return configurationTags.includes(key.environmentId, told);
  };
  if (isKnown()) {
    answer(parts, exchange, context);
    return;
  }
  const leave = () => giveUp?.();
  const giveUp = waiting.wait(key.environmentId, {
    isKnown,
    // It is called by a timer, or by what takes a change, and a fault in it must not reach those.
    resume: () =>
      guarded(() => {
        response.off("close", leave);
        if (directory.find(key.id, now()) !== undefined) {
          answer(parts, exchange, context);
          return;
        }
        answerRefusal(exchange, unknownKey);
        counts.count(name, response.statusCode);
      }),
  });
  if (giveUp === undefined) answer(parts, exchange, context);
  else response.once("close", leave);
}

function answer(parts: OfrepParts, exchange: Exchange, context: EvaluationContext): void {
  const view = parts.views.of(exchange.key.environmentId);
  const refuse = (refusal: Refusal) => {
    answerRefusal(exchange, refusal);
    parts.counts.count(name, exchange.response.statusCode);
  };
  parts.evaluation.all({ exchange, context, view, refuse }, (outcomeNumbers) => {
    const writer = bulkWriterOf(view);
    writer.outcomeNumbers.set(outcomeNumbers);
    answerFrom(writer, parts, exchange);
  });
}

function answerFrom(writer: BulkWriter, parts: OfrepParts, exchange: Exchange): void {
  const { request, response, key } = exchange;
  parts.usage?.answeredAll(key, exchange.nowMs);
  const offer = offerTo(key.id, parts);
  const tag = writer.tag(offer);
  const ifNoneMatch = request.headers["if-none-match"];
  if (ifNoneMatch !== undefined && namesTag(ifNoneMatch, tag)) {
    response.writeHead(304, heads.notModified(exchange, tag));
    response.end();
    parts.counts.count(name, 304);
    return;
  }
  const body = writer.body(offer, tag);
  response.writeHead(200, heads.ok(exchange, tag, body.length));
  response.end(body, "latin1");
  parts.counts.count(name, 200);
}

const heads = taggedHeads([...ofrepHeaders, ...commonHeaders]);

/**
 * Where the caller hears of changes. The address has no origin, which for a client means the one that
 * it has just asked; so it is right behind whatever proxies there are.
 */
function offerTo(keyId: string, { tokens, now }: OfrepParts): StreamOffer {
  if (tokens === undefined) return noOffer;
  const nowMs = now();
  const requestUri = `${ofrepStream.path}?token=${tokens.issue(keyId, nowMs)}`;
  const eventStreams = [{ type: "sse", endpoint: { requestUri } }];
  return { hour: hourOf(nowMs), json: `,"eventStreams":${JSON.stringify(eventStreams)}}` };
}

const noOffer: StreamOffer = { hour: 0, json: "}" };
