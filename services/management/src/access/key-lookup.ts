import { createKeyDirectory, type KeyDirectory, parseApiKey } from "@halyard/api-keys";
import type { KeyEntry } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { keyEntry } from "../keys/key-entry.ts";
import type { FindKey } from "./principal.ts";

/**
 * Who is asking is answered from the directory in memory, as on every service. Only while the
 * directory does not follow the snapshot (NATS is away, or was never there yet) is the table asked,
 * so that management goes on by its own truth: keys issued meanwhile work, revoked ones do not.
 */
export function createKeyLookup(options: {
  sql: Sql;
  directory: KeyDirectory;
  directoryIsCurrent: () => boolean;
}): FindKey {
  const { sql, directory } = options;
  return async (text, nowMs) => {
    if (options.directoryIsCurrent()) return directory.verify(text, nowMs);
    const parsed = parseApiKey(text);
    if (parsed === undefined) return undefined;
    const entry = await readKeyEntry(sql, parsed.id);
    if (entry === undefined) return undefined;
    const momentary = createKeyDirectory();
    momentary.apply(parsed.id, entry);
    return momentary.verify(text, nowMs);
  };
}

async function readKeyEntry(sql: Sql, keyId: string): Promise<KeyEntry | undefined> {
  const [row] = await sql<Parameters<typeof keyEntry>[0][]>`
    select key.id, key.secret_sha256 as "secretSha256", key.kind,
           project.organization_id as "organizationId", project.id as "projectId",
           key.environment_id as "environmentId", key.user_id as "userId",
           key.environment_only as "environmentOnly", key.version,
           key.expires_at as "expiresAt", key.created_at as "committedAt"
    from api_keys as key
    join environments as environment on environment.id = key.environment_id
    join projects as project on project.id = environment.project_id
    where key.id = ${keyId} and key.revoked_at is null`;
  return row === undefined ? undefined : (keyEntry(row).value as KeyEntry);
}
