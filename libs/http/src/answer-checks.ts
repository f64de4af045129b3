import {
  type Access,
  ChangeRequest,
  compileCheck,
  type ErrorCode,
  needOf,
  type RouteContract,
} from "@halyard/contracts";
import { type Answer, isProblem, type Problem } from "./answer.ts";
import { stringify } from "./raw-json.ts";

/** A handler returned a response that the contract of its route does not allow: a bug. */
class AnswerMismatchError extends Error {
  override readonly name = "AnswerMismatchError";
  readonly hasSafeMessage = true;
}

/** A valid credential is never refused by these routes. */
const openToEveryCredential: ReadonlySet<Access> = new Set(["stream_token", "operator_or_any_key"]);

/** Returns the error codes that a route may return: its own, and those of its kind. */
export function answerableErrors(contract: RouteContract): ErrorCode[] {
  const codes = new Set<ErrorCode>(["AUTH_001"]);
  const need = needOf(contract);
  if (need !== undefined || !openToEveryCredential.has(contract.access)) codes.add("AUTH_002");
  if (typeof need === "object" && need.recent) codes.add("AUTH_003");
  codes.add("NOT_FOUND_001").add("VALIDATION_001").add("VALIDATION_002");
  if (contract.method !== "GET") codes.add("VALIDATION_003");
  if (contract.idempotent === true) codes.add("CONFLICT_001");
  if (contract.conditional === true) codes.add("CONFLICT_003");
  if (contract.protectable === true) codes.add("APPROVAL_001");
  for (const code of contract.errors) codes.add(code as ErrorCode);
  return [...codes.add("RATE_001").add("SERVER_001").add("SERVER_002")];
}

const checkChangeRequest = compileCheck(ChangeRequest);

function checkRequestBody(given: Answer): void {
  const checked = checkChangeRequest(bodyAsSeen(given));
  if (!checked.ok) throw new AnswerMismatchError(`the change request: ${checked.problem}`);
}

/** Compiles the check of a route's responses against its contract. */
export function compileAnswerCheck(contract: RouteContract): (given: Answer | Problem) => void {
  const { success, operationId } = contract;
  const checkBody = success.body === undefined ? undefined : compileCheck(success.body);
  const errors = new Set(answerableErrors(contract));
  return (given) => {
    if (isProblem(given)) {
      if (errors.has(given.rejected)) return;
      throw new AnswerMismatchError(`${operationId} must not return the error ${given.rejected}`);
    }
    if (given.status === 304 && contract.revalidated === true) {
      if (bodyAsSeen(given) === undefined) return;
      throw new AnswerMismatchError(`${operationId} must not return 304 with a body`);
    }
    if (given.status === 202 && contract.protectable === true) {
      checkRequestBody(given);
      return;
    }
    if (given.status !== success.status)
      throw new AnswerMismatchError(`${operationId} must not return ${given.status}`);
    // A body in parts is never in memory as a whole, so it is not checked.
    if (given.parts !== undefined) return;
    const checked = checkBody?.(bodyAsSeen(given));
    if (checked !== undefined && !checked.ok)
      throw new AnswerMismatchError(`the response of ${operationId}: ${checked.problem}`);
  };
}

/** Returns the body as the client receives it, after `toJSON` and without undefined fields. */
function bodyAsSeen({ body, json }: Answer): unknown {
  if (json !== undefined) return JSON.parse(json.toString());
  return body === undefined ? undefined : JSON.parse(stringify(body));
}
