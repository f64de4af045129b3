import { randomBytes } from "node:crypto";
import { makeApiKey } from "@halyard/api-keys";
import type { EntryKind, EntryOf, FlagEntry, KeyEntry, Tombstone } from "@halyard/contracts";
import { v7 as uuidv7 } from "uuid";

/** Ids of the scope and the user of keys and flags. */
export type TenantIds = {
  organizationId: string;
  projectId: string;
  environmentId: string;
  userId: string;
};

/** An entry that is not a tombstone. */
type LiveEntryOf<Kind extends EntryKind> = EntryOf<Kind> & {
  value: Exclude<EntryOf<Kind>["value"], Tombstone>;
};

/** Creates a tenant that exists only in the snapshot: ids, valid keys, and the entries of the keys. */
export function tenantInSnapshot() {
  const ids = {
    organizationId: uuidv7(),
    projectId: uuidv7(),
    environmentId: uuidv7(),
    otherEnvironmentId: uuidv7(),
    userId: uuidv7(),
  };
  const server = keyInSnapshot(ids);
  const client = keyInSnapshot(ids, { key_kind: "client" });
  const bound = keyInSnapshot(ids, { environment_only: true });
  return {
    ...ids,
    serverKey: server.text,
    serverKeyId: server.id,
    clientKey: client.text,
    clientKeyId: client.id,
    environmentOnlyKey: bound.text,
    keyEntries: [server.entry, client.entry, bound.entry],
  };
}

/** Creates a valid key with its entry; a server key by default. */
export function keyInSnapshot(
  ids: TenantIds,
  fields: Partial<KeyEntry> = {},
): { id: string; text: string; entry: LiveEntryOf<"key"> } {
  const made = makeApiKey(fields.key_kind ?? "server", randomBytes);
  const value: KeyEntry = {
    kind: "key",
    key_id: made.id,
    secret_sha256: made.secretSha256,
    key_kind: "server",
    organization_id: ids.organizationId,
    project_id: ids.projectId,
    environment_id: ids.environmentId,
    user_id: ids.userId,
    environment_only: false,
    expires_at: null,
    version: 1,
    committed_at: new Date().toISOString(),
    ...fields,
  };
  const address = { kind: "key", organizationId: ids.organizationId, keyId: made.id } as const;
  return { id: made.id, text: made.key, entry: { address, value } };
}

/** Returns the deletions of a project and its environment, as management publishes them. */
export function deletedProjectInSnapshot({ organizationId, projectId, environmentId }: TenantIds) {
  const value = { deleted: true, version: 2, committed_at: new Date().toISOString() } as const;
  return [
    { address: { kind: "project", organizationId, projectId }, value },
    { address: { kind: "environment", organizationId, environmentId }, value },
  ] as const;
}

/** Returns the entry of a flag in an environment; disabled by default. */
export function flagInSnapshot(
  ids: TenantIds,
  fields: Partial<FlagEntry> = {},
): LiveEntryOf<"flag"> {
  const { organizationId } = ids;
  const { flag_id: flagId = uuidv7(), environment_id: environmentId = ids.environmentId } = fields;
  return {
    address: { kind: "flag", organizationId, environmentId, flagId },
    value: {
      kind: "flag",
      organization_id: organizationId,
      project_id: ids.projectId,
      environment_id: environmentId,
      flag_id: flagId,
      key: `flag-${flagId}`,
      enabled: false,
      rollout_percentage: 100,
      targeting_rules: [],
      version: 1,
      committed_at: new Date().toISOString(),
      ...fields,
    },
  };
}
