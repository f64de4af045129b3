import { type Deletion, entryKey, parseEntryKey, type SnapshotEntry } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import type { StateScope } from "../history/history-store.ts";
import { entryToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";

/**
 * Deletions in PostgreSQL. Deleted organizations, projects and environments are invisible to the runtime role, and it
 * has no right to delete them. Database functions with more rights read and delete them.
 */

/**
 * Marks an organization, project or environment as deleted, together with the projects and environments that it
 * contains. Returns the tombstones. The caller holds the locks that prevent new rows.
 */
export async function markDeleted(
  tx: Transaction,
  subject: string,
  now: Date,
): Promise<OutboxMessage[]> {
  const marked = await tx<{ entryKey: string; version: number }[]>`
    select entry_key as "entryKey", next_version as version from mark_deleted(${subject}, ${now})`;
  return marked.map((row) => entryToPublish(tombstone({ ...row, deletedAt: now })));
}

/** Days for which every rebuilt snapshot contains a tombstone. All other tombstones are kept for seven days. */
const tombstoneDays = 8;

/** Reads the next tombstones of organizations, projects and environments for a rebuild of the snapshot. */
export async function scopeTombstonesAfter(
  sql: Sql,
  last: SnapshotEntry | undefined,
  limit: number,
): Promise<Deletion[]> {
  const lastKey = last === undefined ? "" : entryKey(last.address);
  const scopes = await sql<{ entryKey: string; version: number; deletedAt: Date }[]>`
    select entry_key as "entryKey", deleted_version as version, deletion as "deletedAt"
    from deleted_places(${tombstoneDays}, ${lastKey}, ${limit})`;
  return scopes.map(tombstone);
}

function tombstone(deleted: { entryKey: string; version: number; deletedAt: Date }): Deletion {
  const address = parseEntryKey(deleted.entryKey);
  if (address === undefined) throw new Error(`${deleted.entryKey} is not the key of an entry`);
  const { version, deletedAt } = deleted;
  return { address, value: { deleted: true, version, committed_at: deletedAt.toISOString() } };
}

export async function hasRowsToRemove(sql: Sql): Promise<boolean> {
  const [row] = await sql<[{ any: boolean }]>`select has_rows_to_remove() as any`;
  return row.any;
}

export type DeletedEnvironment = {
  environmentId: string;
  projectId: string;
  organizationId: string;
};

/** Locks the deleted environment that has waited longest. Skips environments that another process has locked. */
export async function claimDeletedEnvironment(
  tx: Transaction,
): Promise<DeletedEnvironment | undefined> {
  const [claimed] = await tx<DeletedEnvironment[]>`
    select environment_id as "environmentId", project_id as "projectId",
      organization_id as "organizationId"
    from claim_deleted_environment()`;
  return claimed;
}

/** Completes the removal of deleted environments that have no rows left. Returns the number of environments. */
export async function finishEmptyEnvironments(tx: Transaction, atMost: number): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select finish_empty_environments(${atMost}) as count`;
  return row.count;
}

/** Removes up to `atMost` API keys of a deleted environment. Returns their ids and the versions of their tombstones. */
export async function removeKeys(
  tx: Transaction,
  { environmentId }: DeletedEnvironment,
  atMost: number,
): Promise<{ keyId: string; version: number }[]> {
  return tx<{ keyId: string; version: number }[]>`
    select key_id as "keyId", next_version as version
    from remove_keys_of_deleted(${environmentId}, ${atMost})`;
}

/**
 * Locks flags that have a state in a deleted environment, and returns the states. Flags are locked first, as in every
 * transaction that changes a state.
 */
export async function lockStates(
  tx: Transaction,
  { environmentId }: DeletedEnvironment,
  atMost: number,
): Promise<StateScope[]> {
  return tx<StateScope[]>`
    select flag.id as "flagId", ${environmentId}::uuid as "environmentId"
    from flags as flag
    where flag.id = any(array(
      select flag_id from flag_states
      where environment_id = ${environmentId}
      order by flag_id
      limit ${atMost}
    ))
    order by flag.id
    for update of flag`;
}

/** Removes the states of locked flags from a deleted environment. */
export async function removeStates(
  tx: Transaction,
  { environmentId }: DeletedEnvironment,
  flagIds: readonly string[],
): Promise<void> {
  await Promise.all([
    tx`
      delete from flag_states
      where environment_id = ${environmentId} and flag_id = any(${flagIds as string[]}::uuid[])`,
    tx`
      delete from flags_last_seen
      where environment_id = ${environmentId} and flag_id = any(${flagIds as string[]}::uuid[])`,
  ]);
}

/**
 * Removes the fill of a deleted environment, so that no process continues it. Waits for a batch that is in progress.
 */
export async function removeFill(
  tx: Transaction,
  { environmentId }: DeletedEnvironment,
): Promise<void> {
  await tx`delete from environment_fills where environment_id = ${environmentId}`;
}

export async function finishEnvironment(
  tx: Transaction,
  { environmentId }: DeletedEnvironment,
): Promise<void> {
  await tx`select finish_deleted_environment(${environmentId})`;
}

/**
 * Removes up to `atMost` audiences of deleted projects. Returns the tombstones of the audiences and of their chunks. The
 * entries of their lists are removed later.
 */
export async function removeAudiences(
  tx: Transaction,
  atMost: number,
  now: Date,
): Promise<OutboxMessage[]> {
  const removed = await tx<{ entryKey: string; version: number }[]>`
    select entry_key as "entryKey", next_version as version
    from remove_audiences_of_deleted(${atMost})`;
  return removed.map((row) => entryToPublish(tombstone({ ...row, deletedAt: now })));
}

/** Removes flags of deleted projects and users of deleted organizations. Returns whether rows may be left. */
export async function removeRest(tx: Transaction, atMost: number): Promise<boolean> {
  const [row] = await tx<[{ more: boolean }]>`select remove_rest_of_deleted(${atMost}) as more`;
  return row.more;
}

/** Removes the e-mail addresses of erased users from a page of the audit log. Returns whether entries may be left. */
export async function eraseFromAuditLog(tx: Transaction, atMost: number): Promise<boolean> {
  const [row] = await tx<[{ more: boolean }]>`select erase_from_audit_log(${atMost}) as more`;
  return row.more;
}
