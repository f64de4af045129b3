import { sdkRuleset, sdkRulesetStream } from "@halyard/contracts";
import { acceptsGzip, createProblem } from "@halyard/http";
import { deltaEvent, etagOf, format } from "../../answers/rulesets.ts";
import type { RulesetListener } from "../../streams/ruleset-streams.ts";
import { unknownKey } from "../authentication.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";
import { takeSlot } from "../take-slot.ts";
import { readHeldTags, unlessOlder } from "./held-rules.ts";

/** The route for the rules of all flags. SDKs evaluate them in the application. */
export function rulesetRoute(parts: EdgeParts): EdgeRoute {
  return {
    contract: sdkRuleset,
    name: "ruleset",
    countsItself: true,
    authenticate: parts.byBearer,
    respond: inFormat((exchange) => answerRules(parts, exchange)),
  };
}

/** Rejects requests that do not ask for the format. A reader of release 0.1 would guess what it does not know. */
function inFormat(respond: (exchange: SdkExchange) => void): (exchange: SdkExchange) => void {
  return (exchange) => {
    if (exchange.query.format === String(format)) respond(exchange);
    else exchange.reject(otherFormat);
  };
}

const otherFormat = createProblem(
  "VALIDATION_001",
  `query parameter /format must be ${format}: update the SDK to release 0.2.0 or later`,
);

function answerRules(parts: EdgeParts, exchange: SdkExchange): void {
  const { key, headers, nowMs } = exchange;
  const ifNoneMatch = headers["if-none-match"];
  const held = readHeldTags(ifNoneMatch);
  unlessOlder(parts, exchange, {
    held,
    respond() {
      parts.usage?.count(key, "ruleset", nowMs);
      const present = parts.configurationTags.of(key.environmentId);
      // Edges may name the same rules with different times, because they remove deletions at different times.
      const isHeld = held.some(({ hash }) => hash === present.hash);
      if (isHeld || ifNoneMatch?.trim() === "*") exchange.answerNotModified(etagOf(present));
      else
        whenPrepared(parts, exchange, prepareBody(parts, exchange), ({ etag, bytes, coding }) =>
          exchange.answerBytes(etag, bytes, coding),
        );
    },
  });
}

/** Minimum length of a compressed body. A shorter one fits in one packet. */
const minCompressedBytes = 1_024;

async function prepareBody({ rulesets }: EdgeParts, { key, headers }: SdkExchange) {
  const ruleset = await rulesets.of(key);
  const { body, etag } = ruleset;
  const isCompressed =
    body.length >= minCompressedBytes && acceptsGzip(headers["accept-encoding"]?.toString());
  if (!isCompressed) return { etag, bytes: body };
  return { etag, bytes: await ruleset.gzip(), coding: "gzip" };
}

/** Passes the result of a preparation on, unless the client has left or its key has ended meanwhile. */
function whenPrepared<T>(
  { isKeyLive, now }: EdgeParts,
  exchange: SdkExchange,
  preparation: Promise<T>,
  use: (prepared: T) => void,
): void {
  preparation
    .then((prepared) => {
      if (exchange.response.destroyed) return;
      if (isKeyLive(exchange.key.id, now())) use(prepared);
      else exchange.reject(unknownKey);
    })
    .catch((error) => exchange.fail(error));
}

/** The route for streams of the rules of all flags. */
export function rulesetStreamRoute(parts: EdgeParts): EdgeRoute {
  return {
    contract: sdkRulesetStream,
    name: "ruleset_stream",
    countsItself: true,
    authenticate: parts.byBearer,
    respond: inFormat((exchange) => openStream(parts, exchange)),
  };
}

function openStream(parts: EdgeParts, exchange: SdkExchange): void {
  const { rulesets, streams, usage } = parts;
  const { key, nowMs, lastEventId, response } = exchange;
  unlessOlder(parts, exchange, {
    held: readHeldTags(lastEventId),
    respond: () =>
      takeSlot(exchange, parts, (open) => {
        const begin = (first: FirstEvent) =>
          open(() => {
            usage?.count(key, "ruleset_stream", nowMs);
            exchange.beginStream();
            streams.rulesets.open(response, { key, ...first });
          });
        const missed = missedEvent(parts, exchange);
        if (missed !== undefined) begin(missed);
        else
          whenPrepared(parts, exchange, rulesets.of(key), ({ fullEvent, view }) =>
            begin({ firstEvent: fullEvent, view }),
          );
      }),
  });
}

type FirstEvent = Pick<RulesetListener, "firstEvent" | "view">;

/** Returns the event with what the client has missed since an earlier stream; undefined if that is unknown. */
function missedEvent(
  { views, configurationTags }: EdgeParts,
  { key: { environmentId }, lastEventId }: SdkExchange,
): FirstEvent | undefined {
  const [held] = readHeldTags(lastEventId);
  if (held === undefined) return undefined;
  const tag = configurationTags.of(environmentId);
  const view = views.of(environmentId);
  if (tag.hash === held.hash) return { firstEvent: [], view };
  const changed = configurationTags.changedSince(environmentId, held);
  return changed && { firstEvent: [deltaEvent({ environmentId, view, tag, changed })], view };
}
