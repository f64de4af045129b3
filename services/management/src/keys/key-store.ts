import type { Sql, Transaction } from "@halyard/postgres";
import type { Key, KeyAddress, KeyInUse, KeyPlace } from "./key.ts";

/** API keys in PostgreSQL. None is ever deleted: the list shows what there was. */
type Place = { projectId: string; environmentId: string };

const columns = (sql: Sql | Transaction) => sql`
  key.id, key.secret_sha256 as "secretSha256", key.kind, key.name,
  project.organization_id as "organizationId", project.id as "projectId",
  key.environment_id as "environmentId", key.user_id as "userId",
  key.environment_only as "environmentOnly", key.version, key.created_at as "createdAt",
  key.expires_at as "expiresAt", key.revoked_at as "revokedAt"`;

const tables = (sql: Sql | Transaction) => sql`
  api_keys as key
  join environments as environment on environment.id = key.environment_id
  join projects as project on project.id = environment.project_id`;

const withUse = (sql: Sql) => sql`
  ${tables(sql)} left join keys_last_seen as seen on seen.key_id = key.id`;

const isAt = (sql: Sql | Transaction, address: KeyAddress) => sql`
  key.id = ${address.keyId}
  and environment.id = ${address.environmentId}
  and project.id = ${address.projectId}`;

export async function findKeyPlace(
  sql: Sql | Transaction,
  place: Place,
): Promise<KeyPlace | undefined> {
  const [found] = await sql<KeyPlace[]>`
    select project.organization_id as "organizationId", project.id as "projectId",
           environment.id as "environmentId"
    from environments as environment
    join projects as project on project.id = environment.project_id
    where environment.id = ${place.environmentId} and project.id = ${place.projectId}`;
  return found;
}

export async function listKeys(sql: Sql, environmentId: string): Promise<KeyInUse[]> {
  return sql<KeyInUse[]>`
    select ${columns(sql)}, seen.used_at as "lastUsedAt"
    from ${withUse(sql)}
    where key.environment_id = ${environmentId}
    order by key.created_at, key.id`;
}

export async function findKey(sql: Sql, address: KeyAddress): Promise<KeyInUse | undefined> {
  const [key] = await sql<KeyInUse[]>`
    select ${columns(sql)}, seen.used_at as "lastUsedAt"
    from ${withUse(sql)}
    where ${isAt(sql, address)}`;
  return key;
}

/** A key by its id alone, unless it was revoked: for telling who is asking. */
export async function findUnrevokedKey(sql: Sql, keyId: string): Promise<Key | undefined> {
  const [key] = await sql<Key[]>`
    select ${columns(sql)} from ${tables(sql)} where key.id = ${keyId} and key.revoked_at is null`;
  return key;
}

/** Reads the next keys in the order of ids, without revoked and expired ones. */
export const workingKeysAfter = (sql: Sql, id: string, limit: number) => sql<Key[]>`
  select ${columns(sql)} from ${tables(sql)}
  where key.id > ${id}
    and key.revoked_at is null and (key.expires_at is null or key.expires_at > now())
  order by key.id
  limit ${limit}`;

/** Reads a key to change it. What it is joined with never changes, so its own lock is enough. */
export async function lockKey(tx: Transaction, address: KeyAddress): Promise<Key | undefined> {
  const [key] = await tx<Key[]>`
    select ${columns(tx)} from ${tables(tx)} where ${isAt(tx, address)} for update of key`;
  return key;
}

export async function insertKey(tx: Transaction, key: Key): Promise<void> {
  await tx`
    insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id,
      environment_only, version, created_at, expires_at, revoked_at)
    values (${key.id}, ${key.secretSha256}, ${key.kind}, ${key.name}, ${key.environmentId},
      ${key.userId}, ${key.environmentOnly}, ${key.version}, ${key.createdAt}, ${key.expiresAt},
      ${key.revokedAt})`;
}

/** Writes a change of a key that is locked. */
export async function updateKey(tx: Transaction, key: Key): Promise<void> {
  await tx`
    update api_keys
    set version = ${key.version}, expires_at = ${key.expiresAt}, revoked_at = ${key.revokedAt}
    where id = ${key.id}`;
}
