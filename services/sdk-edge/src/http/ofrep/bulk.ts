import { ofrepEvaluateFlags } from "@halyard/contracts";
import type { EvaluationContext } from "@halyard/evaluation";
import { mayBeNewer, parseConfigurationTag } from "../../answers/configuration-tags.ts";
import {
  type EnvironmentView,
  type EvaluatedFlags,
  positionsHeldBack,
  type TypedFlag,
} from "../../answers/environment-view.ts";
import type { OwnTexts } from "../../answers/flag-bodies.ts";
import { readOfrepContext } from "../../context/ofrep-context.ts";
import { awaitState } from "../await-state.ts";
import type { EdgeParts } from "../edge-parts.ts";
import type { EdgeRoute } from "../edge-route.ts";
import type { SdkExchange } from "../hot-path.ts";
import { bulkWriterOf } from "./bulk-writer.ts";
import { answerProblem, outcomeTexts, typedMembers, unmetMember } from "./evaluation-json.ts";
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
  evaluation.all({ exchange, context, view }, (evaluated) => {
    const writer = bulkWriterOf(view.keys);
    const offer = tokens?.offer(key.id, now()) ?? "";
    usage?.answeredAll(key, nowMs);
    const { outcomeCodes, variations, unmet } = evaluated;
    const typed = { flags: view.typed, variations, unmet };
    exchange.answerTagged(writer.tag(outcomeCodes, offer, typed), () =>
      writer.body(outcomeCodes, offer, ownTextsOf(view, evaluated)),
    );
  });
}

/** Returns the texts of typed flags and of flags that a required one holds back. */
function ownTextsOf(view: EnvironmentView, evaluated: EvaluatedFlags): OwnTexts | undefined {
  const { typed } = view;
  const { outcomeCodes, variations, unmet } = evaluated;
  const texts = variations.map((variation, index) =>
    typedMembers(variation, outcomeCodes[(typed[index] as TypedFlag).position] as number),
  );
  if (unmet.length > 0) return withUnmet({ flags: typed, texts }, evaluated);
  return typed.length === 0 ? undefined : { flags: typed, texts };
}

/** Appends the unmet requirements to the texts of their flags. */
function withUnmet({ flags, texts }: OwnTexts, { outcomeCodes, unmet }: EvaluatedFlags): OwnTexts {
  const textAt = new Map(flags.map(({ position }, index) => [position, texts[index]]));
  positionsHeldBack(outcomeCodes).forEach((position, index) => {
    const members = textAt.get(position) ?? outcomeTexts[outcomeCodes[position] as number];
    textAt.set(position, `${members}${unmetMember(unmet[index] ?? "")}`);
  });
  const ordered = [...textAt].sort(([one], [other]) => one - other);
  return {
    flags: ordered.map(([position]) => ({ position })),
    texts: ordered.map(([, text]) => text as string),
  };
}
