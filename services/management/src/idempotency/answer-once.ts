import { createAnswerOnce as createAnswerOnceFor } from "@halyard/idempotency";
import type { Answer, Refusal, RequestFacts } from "@halyard/service";
import type { Principal } from "../access/principal.ts";
import type { Write } from "../outbox/write.ts";

/** `Idempotency-Key` as the routes of this service have it: in a write, for whoever is asking. */
export type AnswerOnce = (
  write: Write,
  route: { operationId: string },
  input: { params: unknown; body: unknown; request: RequestFacts },
  principal: Principal,
  work: () => Promise<Answer | Refusal>,
) => Promise<Answer | Refusal>;

export function createAnswerOnce(randomBytes: (size: number) => Buffer): AnswerOnce {
  const answerOnce = createAnswerOnceFor(randomBytes);
  return ({ tx }, { operationId }, { params, body, request }, principal, work) => {
    const caller = principal.kind === "operator" ? "operator" : principal.key.id;
    return answerOnce(tx, { caller, operationId, params, body, request }, work);
  };
}
