import type { EntryOf } from "@halyard/contracts";

/** What the other services need to know of an API key: whose it is, and how to tell that it is right. */
export function keyEntry(key: {
  id: string;
  secretSha256: string;
  kind: "client" | "server";
  organizationId: string;
  projectId: string;
  environmentId: string;
  userId: string;
  environmentOnly: boolean;
  version: number;
  expiresAt: Date | null;
  committedAt: Date;
}): EntryOf<"key"> {
  return {
    address: { kind: "key", organizationId: key.organizationId, keyId: key.id },
    value: {
      kind: "key",
      key_id: key.id,
      secret_sha256: key.secretSha256,
      key_kind: key.kind,
      organization_id: key.organizationId,
      project_id: key.projectId,
      environment_id: key.environmentId,
      user_id: key.userId,
      environment_only: key.environmentOnly,
      expires_at: key.expiresAt?.toISOString() ?? null,
      version: key.version,
      committed_at: key.committedAt.toISOString(),
    },
  };
}
