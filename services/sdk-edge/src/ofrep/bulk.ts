import { ofrepEvaluateFlags } from "@halyard/contracts";
import type { EvaluationContext } from "@halyard/evaluation";
import { readOfrepContext } from "../context/ofrep-context.ts";
import { mayBeNewer, parseConfigurationTag } from "../environment/configuration-tag.ts";
import { unknownKey } from "../http/authentication.ts";
import type { Exchange } from "../http/exchange.ts";
import type { EdgeRoute } from "../http/routes.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";
import { bulkWriterOf } from "./bulk-writer.ts";
import type { ConfigurationTags } from "./configuration-tags.ts";
import { answerProblem } from "./evaluation-json.ts";
import type { StreamTokens } from "./stream-tokens.ts";
import type { WaitingRefetches } from "./waiting-refetches.ts";

export type BulkParts = SdkParts & {
  /** Undefined: no streams are offered. */
  tokens: StreamTokens | undefined;
  waiting: WaitingRefetches;
  configurationTags: ConfigurationTags;
};

/** The route for the evaluations of all flags, which web providers request. */
export function bulkRoute(parts: BulkParts): EdgeRoute {
  return {
    contract: ofrepEvaluateFlags,
    name: "ofrep_flags",
    authenticate: parts.byEitherHeader,
    respond: (exchange) => respond(parts, exchange),
  };
}

function respond(parts: BulkParts, exchange: Exchange): void {
  const context = readOfrepContext(exchange.body);
  if ("errorCode" in context) {
    answerProblem(exchange, 400, context);
    return;
  }
  const { flagConfigEtag } = exchange.query;
  if (typeof flagConfigEtag === "string")
    answerWhenKnown(parts, exchange, { context, flagConfigEtag });
  else answer(parts, exchange, context);
}

/** Waits for the change that a refetch refers to, for at most a second, if it has not arrived at this edge. */
function answerWhenKnown(
  parts: BulkParts,
  exchange: Exchange,
  { context, flagConfigEtag }: { context: EvaluationContext; flagConfigEtag: string },
): void {
  const { waiting, configurationTags, directory, now } = parts;
  const { key, response } = exchange;
  const requested = parseConfigurationTag(flagConfigEtag);
  const isKnown = () => {
    if (requested === undefined) return true;
    const present = configurationTags.of(key.environmentId);
    if (!mayBeNewer(requested, { present, nowMs: now() })) return true;
    return configurationTags.includes(key.environmentId, requested);
  };
  if (isKnown()) {
    answer(parts, exchange, context);
    return;
  }
  const leave = () => giveUp?.();
  const giveUp = waiting.wait(key.environmentId, {
    isKnown,
    // A timer calls this, or the code that applies a change. An error must not reach either of them.
    resume: () =>
      exchange.guarded(() => {
        response.off("close", leave);
        if (directory.find(key.id, now()) === undefined) exchange.reject(unknownKey);
        else answer(parts, exchange, context);
      }),
  });
  if (giveUp === undefined) answer(parts, exchange, context);
  else response.once("close", leave);
}

function answer(parts: BulkParts, exchange: Exchange, context: EvaluationContext): void {
  const { views, evaluation, usage, tokens, now } = parts;
  const { key, nowMs } = exchange;
  const view = views.of(key.environmentId);
  evaluation.all({ exchange, context, view }, (outcomeCodes) => {
    const writer = bulkWriterOf(view.keys);
    const offer = tokens?.offer(key.id, now()) ?? "";
    usage?.answeredAll(key, nowMs);
    exchange.answerTagged(writer.tag(outcomeCodes, offer), () => writer.body(outcomeCodes, offer));
  });
}
