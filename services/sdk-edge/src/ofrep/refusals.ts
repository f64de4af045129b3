import { errorCodes, type OfrepErrorCode } from "@halyard/contracts";
import type { Refusal } from "@halyard/service";
import { type Asked, answerJson, refuseInOneShape } from "../sdk/endpoint.ts";

/**
 * Errors as OFREP has them. Where it says nothing of a body, for keys that do not work, limits and
 * edges that are not ready, the error has the shape that it has everywhere else.
 */
const ofrepCodes: Partial<Record<Refusal["refused"], OfrepErrorCode>> = {
  VALIDATION_001: "PARSE_ERROR",
  VALIDATION_002: "GENERAL",
  VALIDATION_003: "PARSE_ERROR",
  SERVER_001: "GENERAL",
};

/** What a caller is told. It repeats nothing of what was sent, except for the flag's key. */
export type OfrepProblem = { errorCode: OfrepErrorCode; errorDetails: string };

/** Refuses a request about all flags. */
export function refuseBulk(asked: Asked, refusal: Refusal): void {
  refuseAs(asked, refusal, answerBulkProblem);
}

/** Refuses a request about one flag. */
export function refuseSingle(asked: Asked, refusal: Refusal): void {
  refuseAs(asked, refusal, answerSingleProblem);
}

function refuseAs(asked: Asked, refusal: Refusal, answer: typeof answerBulkProblem): void {
  const errorCode = ofrepCodes[refusal.refused];
  if (errorCode === undefined) refuseInOneShape(asked, refusal);
  else
    answer(asked, errorCodes[refusal.refused].status, {
      errorCode,
      errorDetails: refusal.message,
    });
}

export function answerBulkProblem(asked: Asked, status: number, problem: OfrepProblem): void {
  answerJson(asked, status, { body: JSON.stringify(problem), headers: [] });
}

export function answerSingleProblem(asked: Asked, status: number, problem: OfrepProblem): void {
  const body = JSON.stringify({ key: asked.parameter, ...problem });
  answerJson(asked, status, { body, headers: [] });
}
