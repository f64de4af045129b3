import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { bearerToken } from "@halyard/api-keys";
import type { Transaction } from "@halyard/postgres";
import {
  type Answer,
  createProblem,
  isProblem,
  type Problem,
  type RequestFacts,
} from "@halyard/service";

/**
 * `Idempotency-Key`: the same key and request again get the first answer again, for a day. The key's
 * row is written in the transaction of the effect, so there is never one without the other, and two
 * requests at once wait for each other. A refusal has to roll that transaction back, and with it the
 * row: refusals are not remembered. The table is the service's own, `idempotency_keys` in its schema.
 *
 * An answer may carry a new API key, which must not be kept readable. So answers are encrypted with
 * a key derived from what the caller presented, which we do not keep either: only the same caller can
 * be given the answer again.
 */
export type AnswerOnce = (
  tx: Transaction,
  asked: {
    /** Tells callers apart: the API key's id, for instance. */
    caller: string;
    operationId: string;
    params: unknown;
    body: unknown;
    request: RequestFacts;
  },
  work: () => Promise<Answer | Problem>,
) => Promise<Answer | Problem>;

/** How long an answer is kept for a request that comes again. */
export const answerLifetimeHours = 24;

const keyShape = /^[\x20-\x7e]{1,255}$/;
const usedByAnother = createProblem(
  "CONFLICT_001",
  "This Idempotency-Key was used for another request, or by another caller.",
);
const cipher = "aes-256-gcm";
const ivBytes = 12;
const tagBytes = 16;

export function createAnswerOnce(randomBytes: (size: number) => Buffer): AnswerOnce {
  return async (tx, { caller, operationId, params, body, request }, work) => {
    const idempotencyKey = request.idempotencyKey;
    if (idempotencyKey === undefined) return work();
    if (!keyShape.test(idempotencyKey))
      return createProblem(
        "VALIDATION_001",
        "Idempotency-Key must be 1 to 255 printable ASCII characters.",
      );
    const requestSha256 = sha256(JSON.stringify([operationId, canonical(params), canonical(body)]));
    const sealingKey = deriveKey(bearerToken(request.headers.authorization) ?? "", idempotencyKey);

    const earlier = await claim(tx, { caller, idempotencyKey, requestSha256 });
    if (earlier !== undefined) {
      if (earlier.requestSha256 !== requestSha256 || earlier.answer === null) return usedByAnother;
      return unseal(earlier.answer, sealingKey) ?? usedByAnother;
    }
    const given = await work();
    if (!isProblem(given)) {
      const sealed = seal(given, sealingKey, randomBytes(ivBytes));
      await tx`
        update idempotency_keys set answer = ${sealed}
        where caller = ${caller} and idempotency_key = ${idempotencyKey}`;
    }
    return given;
  };
}

type StoredAnswer = { requestSha256: string; answer: Buffer | null };

/** Takes the key for this request, or answers what is kept under it. Waits for one that is under way. */
async function claim(
  tx: Transaction,
  row: { caller: string; idempotencyKey: string; requestSha256: string },
): Promise<StoredAnswer | undefined> {
  const claimed = await tx`
    insert into idempotency_keys as kept (caller, idempotency_key, request_sha256, created_at)
    values (${row.caller}, ${row.idempotencyKey}, ${row.requestSha256}, clock_timestamp())
    on conflict (caller, idempotency_key) do update
      set request_sha256 = excluded.request_sha256, answer = null, created_at = excluded.created_at
      where kept.created_at < clock_timestamp() - ${answerLifetimeHours} * interval '1 hour'`;
  if (claimed.count === 1) return undefined;
  const [earlier] = await tx<StoredAnswer[]>`
    select request_sha256 as "requestSha256", answer
    from idempotency_keys
    where caller = ${row.caller} and idempotency_key = ${row.idempotencyKey}`;
  return earlier;
}

function deriveKey(presented: string, idempotencyKey: string): Buffer {
  return Buffer.from(
    hkdfSync("sha256", presented, idempotencyKey, "halyard idempotent answer", 32),
  );
}

function seal(given: Answer, key: Buffer, iv: Buffer): Buffer {
  const sealing = createCipheriv(cipher, key, iv);
  const text = sealing.update(JSON.stringify(given), "utf8");
  return Buffer.concat([iv, text, sealing.final(), sealing.getAuthTag()]);
}

/** Undefined for an answer that was sealed with something else: another operator token, say. */
function unseal(sealed: Buffer, key: Buffer): Answer | undefined {
  const opening = createDecipheriv(cipher, key, sealed.subarray(0, ivBytes));
  opening.setAuthTag(sealed.subarray(-tagBytes));
  const text = opening.update(sealed.subarray(ivBytes, -tagBytes));
  try {
    return JSON.parse(Buffer.concat([text, opening.final()]).toString()) as Answer;
  } catch {
    return undefined;
  }
}

/** The same JSON is the same request, in whatever order its fields come. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return fields.map(([name, field]) => [name, canonical(field)]);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
