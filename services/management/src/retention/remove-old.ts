import type { Sql, Transaction } from "@halyard/postgres";
import { entryMessage, type OutboxMessage } from "../outbox/outbox-message.ts";

/**
 * The functions of the database that remove what is older than a period, a batch each. The service's role
 * has no right to delete from these tables itself.
 */
type Batch = { keptDays: number; atMost: number };

/** Undefined while another process removes something. */
type Removed<Counts> = Promise<Counts | undefined>;

/** Visits the next old entries of the history and removes those that they supersede. */
export async function removeOldHistory(
  sql: Sql,
  { keptDays, atMost }: Batch,
): Removed<{ visitedEntries: number; removedEntries: number }> {
  const [row] = await sql<[{ visitedEntries: number | null; removedEntries: number }]>`
    select visited_entries as "visitedEntries", removed_entries as "removedEntries"
    from remove_old_history(${keptDays}, ${atMost})`;
  const { visitedEntries, removedEntries } = row;
  return visitedEntries === null ? undefined : { visitedEntries, removedEntries };
}

/** Removes entries of the audit log, and the rest of the history of flags whose deletion is among them. */
export async function removeOldChanges(
  sql: Sql,
  { keptDays, atMost }: Batch,
): Removed<{ removedChanges: number; removedEntries: number }> {
  const [row] = await sql<[{ removedChanges: number | null; removedEntries: number }]>`
    select removed_changes as "removedChanges", removed_entries as "removedEntries"
    from remove_old_changes(${keptDays}, ${atMost})`;
  const { removedChanges, removedEntries } = row;
  return removedChanges === null ? undefined : { removedChanges, removedEntries };
}

/** Removes the recorded ends of old chains of deleted projects and environments, with the rest of their history. */
export async function removeEndedHistory(
  sql: Sql,
  { keptDays, atMost }: Batch,
): Removed<{ removedChains: number; removedEntries: number }> {
  const [row] = await sql<[{ removedChains: number | null; removedEntries: number }]>`
    select removed_chains as "removedChains", removed_entries as "removedEntries"
    from remove_ended_history(${keptDays}, ${atMost})`;
  const { removedChains, removedEntries } = row;
  return removedChains === null ? undefined : { removedChains, removedEntries };
}

/**
 * Removes keys that ended. Returns their number, and the deletions of those that are still in the snapshot:
 * a revoked key left it when it was revoked, an expired one stays.
 */
export async function removeEndedKeys(
  tx: Transaction,
  { keptDays, atMost, now }: Batch & { now: Date },
): Promise<{ removedKeys: number; deletions: OutboxMessage[] }> {
  const rows = await tx<
    { keyId: string; organizationId: string; nextVersion: number; wasRevoked: boolean }[]
  >`
    select key_id as "keyId", organization_id as "organizationId", next_version as "nextVersion",
      was_revoked as "wasRevoked"
    from remove_ended_keys(${keptDays}, ${atMost})`;
  const deletions = rows
    .filter(({ wasRevoked }) => !wasRevoked)
    .map(({ keyId, organizationId, nextVersion }) =>
      entryMessage(
        { kind: "key", organizationId, keyId },
        { deleted: true, version: nextVersion, committed_at: now.toISOString() },
      ),
    );
  return { removedKeys: rows.length, deletions };
}
