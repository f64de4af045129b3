import { createHash } from "node:crypto";

/**
 * Returns the id of the report that an API key sends with an `Idempotency-Key`: always the same, a UUID of version 8
 * (RFC 9562). It is a hash, so that nothing that a client writes in the header is stored.
 */
export function reportIdOf(apiKeyId: string, idempotencyKey: string): string {
  const hex = createHash("sha256").update(`${apiKeyId} ${idempotencyKey}`).digest("hex");
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`];
  return [...parts, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join("-");
}
