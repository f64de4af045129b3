import { createCipheriv, createDecipheriv, createHash, hkdfSync } from "node:crypto";
import { bearerToken } from "@halyard/api-keys";
import {
  type Answer,
  checkIdempotencyKey,
  createProblem,
  isProblem,
  type Problem,
  type RequestFacts,
  stringify,
} from "@halyard/http";
import type { Transaction } from "@halyard/postgres";

/**
 * Implements `Idempotency-Key`: a repeated request with the same key gets the first response again, for a day. The row
 * of the key is written in the transaction of the effect, so that both are stored or neither, and concurrent requests
 * wait for each other. A problem must roll this transaction back, and the row with it, so problems are not stored. The
 * table `idempotency_keys` is in the schema of each service.
 *
 * A response may contain a new API key, which must not be stored in clear text. Responses are therefore encrypted with
 * a key that is derived from the caller's credential. The credential is not stored either, so only the same caller can
 * receive the response again.
 */
export type AnswerOnce = (
  tx: Transaction,
  operation: {
    /** Identifies the caller, for example by the id of the API key. */
    caller: string;
    /** The secret of the caller's session, if there is no bearer token. */
    sessionSecret?: string | undefined;
    operationId: string;
    params: unknown;
    body: unknown;
    request: RequestFacts;
  },
  work: () => Promise<Answer | Problem>,
) => Promise<Answer | Problem>;

/** Lifetime of stored responses. */
export const answerLifetimeHours = 24;

const usedByAnother = createProblem(
  "CONFLICT_001",
  "This Idempotency-Key was used for another request, or by another caller.",
);
const cipher = "aes-256-gcm";
const ivBytes = 12;
const tagBytes = 16;

export function createAnswerOnce(randomBytes: (size: number) => Buffer): AnswerOnce {
  return async (tx, { caller, sessionSecret, operationId, params, body, request }, work) => {
    const idempotencyKey = request.idempotencyKey;
    if (idempotencyKey === undefined) return work();
    const invalid = checkIdempotencyKey(idempotencyKey);
    if (invalid !== undefined) return invalid;
    const requestSha256 = sha256(JSON.stringify([operationId, canonical(params), canonical(body)]));
    const presented = sessionSecret ?? bearerToken(request.headers.authorization) ?? "";
    const sealingKey = deriveKey(presented, idempotencyKey);

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

/** Claims the key for this request, or returns the response stored with it. Waits for a concurrent request. */
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
  // The body as text, so that values that are JSON texts stay the same.
  const { body, ...rest } = given;
  const stored = body === undefined ? rest : { ...rest, text: stringify(body) };
  const text = sealing.update(JSON.stringify(stored), "utf8");
  return Buffer.concat([iv, text, sealing.final(), sealing.getAuthTag()]);
}

/** Decrypts a response. Returns undefined if another credential encrypted it, such as a former operator token. */
function unseal(sealed: Buffer, key: Buffer): Answer | undefined {
  const opening = createDecipheriv(cipher, key, sealed.subarray(0, ivBytes));
  opening.setAuthTag(sealed.subarray(-tagBytes));
  const opened = opening.update(sealed.subarray(ivBytes, -tagBytes));
  try {
    const { text: json, ...rest } = JSON.parse(
      Buffer.concat([opened, opening.final()]).toString(),
    ) as Answer & { text?: string };
    return json === undefined ? rest : { ...rest, json: Buffer.from(json) };
  } catch {
    return undefined;
  }
}

/** Returns JSON in a canonical form, so that requests that differ only in the order of their members are the same. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return fields.map(([name, field]) => [name, canonical(field)]);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
