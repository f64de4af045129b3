import { ofrepEvaluateFlags } from "@halyard/contracts";
import type { EvaluationContext } from "@halyard/evaluation";
import { mayBeNewer, parseConfigurationTag } from "../../answers/configuration-tags.ts";
import type { EnvironmentView, TypedFlag } from "../../answers/environment-view.ts";
import type { TypedTexts } from "../../answers/flag-bodies.ts";
import type { VariationText } from "../../answers/variation-texts.ts";
import { readOfrepContext } from "../../context/ofrep-context.ts";
import { awaitState } from "../await-state.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";
import { bulkWriterOf } from "./bulk-writer.ts";
import { answerProblem, typedMembers } from "./evaluation-json.ts";
import type { StreamTokens } from "./stream-tokens.ts";

type BulkParts = EdgeParts & {
  /** Undefined: no streams are offered. */
  tokens: StreamTokens | undefined;
};

/** The route for the evaluations of all flags, which web providers request. */
export function bulkRoute(edgeParts: EdgeParts, tokens: StreamTokens | undefined): EdgeRoute {
  const parts = { ...edgeParts, tokens };
  return {
    contract: ofrepEvaluateFlags,
    name: "ofrep_flags",
    authenticate: parts.byEitherHeader,
    respond: (exchange) => respond(parts, exchange),
  };
}

function respond(parts: BulkParts, exchange: SdkExchange): void {
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
  exchange: SdkExchange,
  { context, flagConfigEtag }: { context: EvaluationContext; flagConfigEtag: string },
): void {
  const { configurationTags, now } = parts;
  const { environmentId } = exchange.key;
  const requested = parseConfigurationTag(flagConfigEtag);
  const isKnown = () => {
    if (requested === undefined) return true;
    const present = configurationTags.of(environmentId);
    if (!mayBeNewer(requested, { present, nowMs: now() })) return true;
    return configurationTags.includes(environmentId, requested);
  };
  awaitState(parts, exchange, { isKnown, respond: () => answer(parts, exchange, context) });
}

function answer(parts: BulkParts, exchange: SdkExchange, context: EvaluationContext): void {
  const { views, evaluation, usage, tokens, now } = parts;
  const { key, nowMs } = exchange;
  const view = views.of(key.environmentId);
  evaluation.all({ exchange, context, view }, (outcomeCodes, variations) => {
    const writer = bulkWriterOf(view.keys);
    const offer = tokens?.offer(key.id, now()) ?? "";
    usage?.answeredAll(key, nowMs);
    const typed = { flags: view.typed, variations };
    exchange.answerTagged(writer.tag(outcomeCodes, offer, typed), () =>
      writer.body(outcomeCodes, offer, typedTextsOf(view, outcomeCodes, variations)),
    );
  });
}

function typedTextsOf(
  { typed }: EnvironmentView,
  outcomeCodes: Uint8Array,
  variations: readonly VariationText[],
): TypedTexts | undefined {
  if (typed.length === 0) return undefined;
  const texts = variations.map((variation, index) =>
    typedMembers(variation, outcomeCodes[(typed[index] as TypedFlag).position] as number),
  );
  return { flags: typed, texts };
}
