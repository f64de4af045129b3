import { numberOfOutcome, type Outcome, outcomesByNumber } from "@halyard/evaluation";
import { asciiJson } from "../environment/ascii-json.ts";

/**
 * Evaluations in OFREP's words, as JSON that is ready. An outcome is one of seven objects, so all that
 * follows a flag's key is one of seven texts. Here they stand by the number of the outcome.
 */
export const outcomeTexts: readonly string[] = outcomesByNumber.map(
  ({ value, reason, variation }) =>
    `,"value":${value},"reason":"${reason.toUpperCase()}","variant":"${variation}"`,
);

/** One flag's evaluation. */
export function evaluationJson(flagKey: string, outcome: Outcome): string {
  return `{"key":${asciiJson(flagKey)}${outcomeTexts[numberOfOutcome(outcome)]}}`;
}
