import { type FlagEntry, type OfrepError, ofrepErrorFor } from "@halyard/contracts";
import { codeOfOutcome, type Outcome, outcomesByCode } from "@halyard/evaluation";
import { asciiJson } from "../../answers/flag-keys.ts";
import type { VariationText } from "../../answers/variation-texts.ts";
import type { SdkExchange } from "../hot-path.ts";

/**
 * The reasons by outcome code. A flag with an unmet requirement has `DEFAULT`, because providers ignore the value beside
 * `DISABLED`. Its metadata name the required flag.
 */
const reasonTexts = outcomesByCode.map(({ reason }) =>
  reason === "prerequisite_failed" ? "DEFAULT" : reason.toUpperCase(),
);

/** The JSON after a flag's key in OFREP, by outcome code. Typed flags have variations instead. */
export const outcomeTexts: readonly string[] = outcomesByCode.map(
  ({ value, variation }, code) =>
    `,"value":${value},"reason":"${reasonTexts[code]}","variant":"${variation}"`,
);

/** Returns the JSON after the key of a typed flag, as a string of bytes. */
export function typedMembers(variation: VariationText, outcomeCode: number): string {
  return variation.beforeReason + reasonTexts[outcomeCode] + variation.afterReason;
}

/** Returns the metadata of a flag that the required flag with this key holds back, with a comma before them. */
export function unmetMember(key: string): string {
  return `,"metadata":{"prerequisite":${asciiJson(key)}}`;
}

/** Returns the evaluation of a typed flag, as a string of bytes. */
export function typedEvaluationJson(
  { key, version }: FlagEntry,
  variation: VariationText,
  { outcome, unmet }: { outcome: Outcome; unmet: string | undefined },
): string {
  const members = typedMembers(variation, codeOfOutcome(outcome));
  const prerequisite = unmet === undefined ? "" : `,"prerequisite":${asciiJson(unmet)}`;
  return `{"key":${asciiJson(key)}${members},"metadata":{"version":${version}${prerequisite}}}`;
}

/** Returns the evaluation of a boolean flag. `unmet` is the key of the required flag that holds it back. */
export function evaluationJson(flagKey: string, outcome: Outcome, unmet?: string): string {
  const key = plainKey.test(flagKey) ? `"${flagKey}"` : asciiJson(flagKey);
  const metadata = unmet === undefined ? "" : unmetMember(unmet);
  return `{"key":${key}${outcomeTexts[codeOfOutcome(outcome)]}${metadata}}`;
}

/** Matches ordinary keys, which need no escapes (`npm run bench -- targeting`, one flag by OFREP). */
const plainKey = /^[\w.-]+$/;

/** Sends an error whose code OFREP defines. The only part of the request in it is the flag's key. */
export function answerProblem(exchange: SdkExchange, status: number, problem: OfrepError): void {
  exchange.answerJson(status, JSON.stringify(ofrepErrorFor(exchange.target, problem)));
}
