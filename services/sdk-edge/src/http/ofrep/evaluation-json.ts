import { type FlagEntry, type OfrepError, ofrepErrorFor } from "@halyard/contracts";
import { codeOfOutcome, type Outcome, outcomesByCode } from "@halyard/evaluation";
import { asciiJson } from "../../answers/flag-keys.ts";
import type { VariationText } from "../../answers/variation-texts.ts";
import type { SdkExchange } from "../hot-path.ts";

/** The JSON after a flag's key in OFREP, by outcome code. Typed flags have variations instead. */
export const outcomeTexts: readonly string[] = outcomesByCode.map(
  ({ value, reason, variation }) =>
    `,"value":${value},"reason":"${reason.toUpperCase()}","variant":"${variation}"`,
);

const reasonTexts = outcomesByCode.map(({ reason }) => reason.toUpperCase());

/** Returns the JSON after the key of a typed flag, as a string of bytes. */
export function typedMembers(variation: VariationText, outcomeCode: number): string {
  return variation.beforeReason + reasonTexts[outcomeCode] + variation.afterReason;
}

/** Returns the evaluation of a typed flag, as a string of bytes. */
export function typedEvaluationJson(
  { key, version }: FlagEntry,
  variation: VariationText,
  outcome: Outcome,
): string {
  const members = typedMembers(variation, codeOfOutcome(outcome));
  return `{"key":${asciiJson(key)}${members},"metadata":{"version":${version}}}`;
}

export function evaluationJson(flagKey: string, outcome: Outcome): string {
  const key = plainKey.test(flagKey) ? `"${flagKey}"` : asciiJson(flagKey);
  return `{"key":${key}${outcomeTexts[codeOfOutcome(outcome)]}}`;
}

/** Matches ordinary keys, which need no escapes (`npm run bench -- targeting`, one flag by OFREP). */
const plainKey = /^[\w.-]+$/;

/** Sends an error whose code OFREP defines. The only part of the request in it is the flag's key. */
export function answerProblem(exchange: SdkExchange, status: number, problem: OfrepError): void {
  exchange.answerJson(status, JSON.stringify(ofrepErrorFor(exchange.target, problem)));
}
