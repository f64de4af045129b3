import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import type { Page } from "../access/answer-all.ts";
import type { Key, KeyAddress, KeyInUse, KeyPlace } from "./key.ts";

/** The environment of keys, as paths name it. Keys are removed by retention, and with their deleted environment. */
type Scope = { projectId: string; environmentId: string };

const columns = fragment`
  key.id, key.secret_sha256 as "secretSha256", key.kind, key.name,
  project.organization_id as "organizationId", project.id as "projectId",
  key.environment_id as "environmentId", key.user_id as "userId",
  key.environment_only as "environmentOnly", key.scope, key.version, key.created_at as "createdAt",
  key.expires_at as "expiresAt", key.revoked_at as "revokedAt",
  key.issued_by as "issuedBy", key.successor_of as "successorOf", key.issuers`;

const tables = fragment`
  api_keys as key
  join environments as environment on environment.id = key.environment_id
  join projects as project on project.id = environment.project_id`;

const withUse = fragment`
  ${tables} left join keys_last_seen as seen on seen.key_id = key.id`;

const isAt = (address: KeyAddress) => fragment`
  key.id = ${address.keyId}
  and environment.id = ${address.environmentId}
  and project.id = ${address.projectId}`;

export async function findKeyScope(
  sql: Sql | Transaction,
  scope: Scope,
): Promise<KeyPlace | undefined> {
  const [found] = await sql<KeyPlace[]>`
    select project.organization_id as "organizationId", project.id as "projectId",
           environment.id as "environmentId"
    from environments as environment
    join projects as project on project.id = environment.project_id
    where environment.id = ${scope.environmentId} and project.id = ${scope.projectId}`;
  return found;
}

/** Returns the scope of a new key, and prevents a deletion of the environment until the transaction ends. */
export async function lockKeyScope(tx: Transaction, scope: Scope): Promise<KeyPlace | undefined> {
  const held = await tx`select from projects where id = ${scope.projectId} for key share`;
  return held.count === 0 ? undefined : findKeyScope(tx, scope);
}

/** Returns the owner of a new key, and prevents a deletion of the user until the transaction ends. */
export async function holdOwner(
  tx: Transaction,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<{ id: string; email: string } | undefined> {
  const [owner] = await tx<{ id: string; email: string }[]>`
    select id, email from users
    where id = ${userId} and organization_id = ${organizationId} and deleted_at is null
      and exists (select from organizations where id = ${organizationId})
    for key share`;
  return owner;
}

/** A position in the list of keys: that of the last key of a page. */
export type KeyPosition = Pick<Key, "id" | "createdAt">;

/**
 * Returns a page of the keys of an environment, newest first. `endedSince` leaves out those that have ended before, and
 * `userId` those of other users.
 */
export async function listKeys(
  sql: Sql,
  environmentId: string,
  page: {
    after: KeyPosition | undefined;
    endedSince?: Date;
    userId: string | undefined;
    limit: number;
  },
): Promise<Page<KeyInUse>> {
  const { after, endedSince, userId, limit } = page;
  const ofUser = userId === undefined ? fragment`` : fragment`and key.user_id = ${userId}`;
  const ofPage = after
    ? fragment`and (key.created_at, key.id) < (${after.createdAt}, ${after.id})`
    : fragment``;
  const unlessLongEnded = endedSince
    ? fragment`and coalesce(least(key.revoked_at, key.expires_at), 'infinity') >= ${endedSince}`
    : fragment``;
  const found = await sql<KeyInUse[]>`
    select ${columns}, seen.used_at as "lastUsedAt"
    from ${withUse}
    where key.environment_id = ${environmentId} ${ofPage} ${ofUser} ${unlessLongEnded}
    order by key.created_at desc, key.id desc
    limit ${limit + 1}`;
  return { items: found.slice(0, limit), more: found.length > limit };
}

/** Counts the keys of an environment that are neither revoked nor expired. */
export async function countLiveKeys(
  tx: Transaction,
  environmentId: string,
  now: Date,
): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select count(*)::integer as count from api_keys
    where environment_id = ${environmentId}
      and revoked_at is null and coalesce(expires_at, 'infinity') > ${now}`;
  return row.count;
}

export async function findKey(sql: Sql, address: KeyAddress): Promise<KeyInUse | undefined> {
  const [key] = await sql<KeyInUse[]>`
    select ${columns}, seen.used_at as "lastUsedAt"
    from ${withUse}
    where ${isAt(address)}`;
  return key;
}

/** Finds a key by its id, unless it is revoked. */
export async function findUnrevokedKey(
  sql: Sql | Transaction,
  keyId: string,
): Promise<Key | undefined> {
  const [key] = await sql<Key[]>`
    select ${columns} from ${tables} where key.id = ${keyId} and key.revoked_at is null`;
  return key;
}

/** Returns when the keys with these ids expire. Revoked keys, and those of deleted environments, are missing. */
export async function readKeyEnds(
  sql: Sql,
  keyIds: readonly string[],
): Promise<Map<string, Date | null>> {
  if (keyIds.length === 0) return new Map();
  const rows = await sql<{ id: string; expiresAt: Date | null }[]>`
    select key.id, key.expires_at as "expiresAt" from ${tables}
    where key.id = any(${keyIds}::text[]) and key.revoked_at is null`;
  return new Map(rows.map(({ id, expiresAt }) => [id, expiresAt]));
}

/** Reads the next valid keys in the order of ids. Skips revoked and expired ones. */
export const workingKeysAfter = (sql: Sql, id: string, limit: number) => sql<Key[]>`
  select ${columns} from ${tables}
  where key.id > ${id}
    and key.revoked_at is null and (key.expires_at is null or key.expires_at > now())
  order by key.id
  limit ${limit}`;

/**
 * Serializes the requests that issue or end keys of a project. Otherwise a key that is issued during a revocation with
 * `issued=true` would survive it, and concurrent requests could exceed the maximum number of keys.
 */
export async function lockKeysOf(tx: Transaction, projectIds: readonly string[]): Promise<void> {
  const names = projectIds.map((projectId) => `keys of ${projectId.toLowerCase()}`);
  await tx`
    select pg_advisory_xact_lock(hashtextextended(name, 0))
    from unnest(${names}::text[]) as name`;
}

/** Reads and locks a key for a change. The joined rows need no lock, because the joined columns never change. */
export async function lockKey(tx: Transaction, address: KeyAddress): Promise<Key | undefined> {
  const [key] = await tx<Key[]>`
    select ${columns} from ${tables} where ${isAt(address)} for update of key`;
  return key;
}

/**
 * Reads and locks the unrevoked keys that a key or its successors have issued, directly or indirectly. A successor of
 * an issued key counts as issued, even if the operator rotated that key.
 */
export async function lockIssuedKeys(tx: Transaction, keyId: string): Promise<Key[]> {
  return tx<Key[]>`
    with recursive links as not materialized (
      select id, issued_by, successor_of from api_keys
      union all
      select id, issued_by, successor_of from removed_keys
    ), descendants (id, is_issued) as (
      values (${keyId}::text, false)
      union
      select link.id, known.is_issued or link.issued_by is not distinct from known.id
      from descendants as known
      join links as link on known.id in (link.issued_by, link.successor_of)
    )
    select ${columns} from ${tables}
    where key.id in (select id from descendants where is_issued) and key.revoked_at is null
    order by key.id
    for update of key`;
}

const worksForUser = (email: string) => fragment`
  key.user_id in (select id from users where lower(email) = ${email})
  and key.revoked_at is null and (key.expires_at is null or key.expires_at > now())`;

export async function countWorkingKeysOfUser(sql: Sql, email: string): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::integer as count from ${tables} where ${worksForUser(email)}`;
  return row.count;
}

/** Returns the ids of all projects of organizations that have a user with this e-mail address, in ascending order. */
export async function readProjectsOfUser(tx: Transaction, email: string): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`
    select project.id
    from projects as project
    join users as owner on owner.organization_id = project.organization_id
    where lower(owner.email) = ${email}
    group by project.id
    order by project.id`;
  return rows.map(({ id }) => id);
}

export async function lockWorkingKeysOfUser(tx: Transaction, email: string): Promise<Key[]> {
  return tx<Key[]>`
    select ${columns} from ${tables}
    where ${worksForUser(email)}
    order by key.id
    for update of key`;
}

export async function lockUnrevokedKeysOfUser(tx: Transaction, userId: string): Promise<Key[]> {
  return tx<Key[]>`
    select ${columns} from ${tables}
    where key.user_id = ${userId} and key.revoked_at is null
    order by key.id
    for update of key`;
}

export async function insertKey(tx: Transaction, key: Key): Promise<void> {
  await tx`
    insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id,
      environment_only, scope, version, created_at, expires_at, revoked_at, issued_by, successor_of,
      issuers)
    values (${key.id}, ${key.secretSha256}, ${key.kind}, ${key.name}, ${key.environmentId},
      ${key.userId}, ${key.environmentOnly}, ${key.scope}, ${key.version}, ${key.createdAt},
      ${key.expiresAt}, ${key.revokedAt}, ${key.issuedBy}, ${key.successorOf},
      ${key.issuers as string[]}::uuid[])`;
}

/** Writes changes to locked keys. */
export async function updateKeys(tx: Transaction, keys: readonly Key[]): Promise<void> {
  await tx`
    update api_keys as key
    set version = changed.version, expires_at = changed."expiresAt", revoked_at = changed."revokedAt"
    from jsonb_to_recordset(${json(keys)}) as changed (
      id text, version bigint, "expiresAt" timestamptz, "revokedAt" timestamptz)
    where key.id = changed.id`;
}
