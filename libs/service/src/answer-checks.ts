import { compileCheck, type ErrorCode, type RouteContract } from "@halyard/contracts";
import { type Answer, isProblem, type Problem } from "./answer.ts";

/** A handler answered what its route's contract does not say: a fault of the program. */
export class AnswerMismatchError extends Error {
  override readonly name = "AnswerMismatchError";
  readonly hasSafeMessage = true;
}

/** Error codes that a route may answer: those that it names, and those that its kind brings along. */
export function answerableErrors(contract: RouteContract): ErrorCode[] {
  const codes = new Set<ErrorCode>(["AUTH_001"]);
  if (contract.access !== "stream_token") codes.add("AUTH_002");
  codes.add("NOT_FOUND_001").add("VALIDATION_001").add("VALIDATION_002");
  if (contract.method !== "GET") codes.add("VALIDATION_003");
  if (contract.idempotent === true) codes.add("CONFLICT_001");
  if (contract.conditional === true) codes.add("CONFLICT_003");
  for (const code of contract.errors) codes.add(code as ErrorCode);
  return [...codes.add("RATE_001").add("SERVER_001").add("SERVER_002")];
}

/** Compiles, once per route, what its contract says about answers. */
export function compileAnswerCheck(contract: RouteContract): (given: Answer | Problem) => void {
  const { success, operationId } = contract;
  const checkBody = success.body === undefined ? undefined : compileCheck(success.body);
  const errors = new Set(answerableErrors(contract));
  return (given) => {
    if (isProblem(given)) {
      if (errors.has(given.rejected)) return;
      throw new AnswerMismatchError(`${operationId} must not refuse with ${given.rejected}`);
    }
    if (given.status === 304 && contract.revalidated === true) {
      if (bodyAsSeen(given) === undefined) return;
      throw new AnswerMismatchError(`${operationId} must not answer 304 with a body`);
    }
    if (given.status !== success.status)
      throw new AnswerMismatchError(`${operationId} must not answer ${given.status}`);
    // A body in parts is not held as a whole, not even to check it.
    if (given.parts !== undefined) return;
    const checked = checkBody?.(bodyAsSeen(given));
    if (checked !== undefined && !checked.ok)
      throw new AnswerMismatchError(`the answer of ${operationId}: ${checked.problem}`);
  };
}

/** The body as the caller will see it, after `toJSON` and without undefined fields. */
function bodyAsSeen({ body, json }: Answer): unknown {
  if (json !== undefined) return JSON.parse(json.toString());
  return body === undefined ? undefined : JSON.parse(JSON.stringify(body));
}
