import { type OfrepError, ofrepErrorFor } from "@halyard/contracts";
import { type Asked, answerJson } from "../sdk/endpoint.ts";

/** Sends an error whose code OFREP defines. The only part of the request in it is the flag's key. */
export function answerProblem(asked: Asked, status: number, problem: OfrepError): void {
  const error = ofrepErrorFor(asked.request.url ?? "", problem);
  answerJson(asked, status, { body: JSON.stringify(error), headers: [] });
}
