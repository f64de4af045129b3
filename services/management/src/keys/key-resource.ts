import type { ApiKey, IssuedApiKey } from "@halyard/contracts";
import type { Key, KeyInUse } from "./key.ts";

/** A key as the API shows it. */
export function keyResource(key: KeyInUse): ApiKey {
  return {
    id: key.id,
    kind: key.kind,
    name: key.name,
    environment_id: key.environmentId,
    user_id: key.userId,
    environment_only: key.environmentOnly,
    issued_by: key.issuedBy,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}

/** The one answer that carries the key itself; `text` is known at this moment only. */
export function issuedKeyResource(key: Key, text: string): IssuedApiKey {
  return { ...keyResource({ ...key, lastUsedAt: null }), key: text };
}
