import { type OfrepError, ofrepErrorFor } from "@halyard/contracts";
import { codeOfOutcome, type Outcome, outcomesByCode } from "@halyard/evaluation";
import { asciiJson } from "../../answers/flag-keys.ts";
import type { SdkExchange } from "../hot-path.ts";

/** The JSON after a flag's key in OFREP, by outcome code. There are only seven outcomes. */
export const outcomeTexts: readonly string[] = outcomesByCode.map(
  ({ value, reason, variation }) =>
    `,"value":${value},"reason":"${reason.toUpperCase()}","variant":"${variation}"`,
);

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
