import { stateOf } from "@halyard/contracts";
import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import { afterEverySequence, maxPageBytes } from "../access/page-bounds.ts";
import type { HistoryEntry } from "../flags/flag.ts";

/** The flag and the environment of a state. Each state has its own history. */
export type StateScope = { flagId: string; environmentId: string };

/**
 * Returns the address of a state that exists in the project. A `projectId` of null means any project. The join leaves
 * out deleted environments, whose rows are removed in batches.
 */
export async function findStateScope(
  sql: Sql,
  scope: StateScope & { projectId: string | null },
): Promise<StateScope | undefined> {
  const [found] = await sql<StateScope[]>`
    select state.flag_id as "flagId", state.environment_id as "environmentId"
    from flag_states as state
    join flags as flag on flag.id = state.flag_id
    join environments as environment on environment.id = state.environment_id
    where state.flag_id = ${scope.flagId}
      and state.environment_id = ${scope.environmentId}
      and flag.project_id = coalesce(${scope.projectId}::uuid, flag.project_id)`;
  return found;
}

/** Returns the sequence of an entry, or undefined if this history does not contain the entry. */
export async function findSequence(
  sql: Sql,
  scope: StateScope,
  entryId: string,
): Promise<number | undefined> {
  const [found] = await sql<{ sequence: number }[]>`
    select entry.sequence
    from history as entry
    where entry.id = ${entryId}
      and entry.flag_id = ${scope.flagId}
      and entry.environment_id = ${scope.environmentId}`;
  return found?.sequence;
}

/**
 * Returns a page of entries, newest first, and whether there are older ones. The page begins before `beforeSequence`,
 * or with the newest entry if that is null. It ends early at `maxPageBytes`.
 */
export async function listHistory(
  sql: Sql,
  scope: StateScope,
  page: { beforeSequence: number | null; limit: number },
): Promise<{ entries: HistoryEntry[]; more: boolean }> {
  const rows = await sql<(HistoryEntry & { available: number })[]>`
    select id, "flagId", "environmentId", content, "changeType", "changedBy", "changedAt", available
    from (
      select found.*, count(*) over () as available,
        sum(octet_length(found.content::text)) over (
          order by found.sequence desc
          rows between unbounded preceding and 1 preceding
        ) as "bytesBefore"
      from (
        select ${columns}, entry.sequence
        from history as entry
        where entry.flag_id = ${scope.flagId}
          and entry.environment_id = ${scope.environmentId}
          and entry.sequence < coalesce(${page.beforeSequence}::bigint, ${afterEverySequence}::bigint)
        order by entry.sequence desc
        limit ${page.limit + 1}
      ) as found
    ) as measured
    where coalesce("bytesBefore", 0) < ${maxPageBytes}
    order by sequence desc`;
  const entries = rows.slice(0, page.limit).map(({ available: _, ...entry }) => fromRow(entry));
  return { entries, more: (rows[0]?.available ?? 0) > entries.length };
}

/** Returns the newest entries of a locked state, newest first. */
export async function readNewestEntries(
  tx: Transaction,
  scope: StateScope,
  count: number,
): Promise<HistoryEntry[]> {
  const rows = await tx<HistoryEntry[]>`
    select ${columns}
    from history as entry
    where entry.flag_id = ${scope.flagId} and entry.environment_id = ${scope.environmentId}
    order by entry.sequence desc
    limit ${count}`;
  return rows.map(fromRow);
}

/** Returns the times of the last changes of audiences in the project of a flag. */
export async function findAudienceTimes(
  sql: Sql,
  flagId: string,
  keys: readonly string[],
): Promise<Map<string, Date>> {
  const rows = await sql<{ key: string; updatedAt: Date }[]>`
    select audience.key, audience.updated_at as "updatedAt"
    from flags as flag
    join audiences as audience on audience.project_id = flag.project_id
    where flag.id = ${flagId} and audience.key = any(${keys})`;
  return new Map(rows.map(({ key, updatedAt }) => [key, updatedAt]));
}

const fromRow = (row: HistoryEntry): HistoryEntry => ({ ...row, content: stateOf(row.content) });

const columns = fragment`
  entry.id, entry.flag_id as "flagId", entry.environment_id as "environmentId", entry.content,
  entry.change_type as "changeType", entry.changed_by as "changedBy",
  entry.changed_at as "changedAt"`;

/** Returns whether a state was that of an entry, and not yet of the next one, when the protection of its environment began. */
export async function stoodWhenProtected(
  tx: Transaction,
  entry: Pick<HistoryEntry, "id" | "environmentId">,
  next: Pick<HistoryEntry, "id">,
): Promise<boolean> {
  const found = await tx`
    select from environments as environment
    join history as entry on entry.id = ${entry.id} and entry.sequence <= protected_after
    join history as next on next.id = ${next.id} and next.sequence > protected_after
    where environment.id = ${entry.environmentId}`;
  return found.count > 0;
}

/** Returns whether an entry is the result of an approved change request. That of a bypass is not. */
export async function isApprovedEntry(tx: Transaction, entryId: string): Promise<boolean> {
  const found = await tx`
    select from change_requests
    where ${entryId} = any(applied_entries) and bypass_reason is null`;
  return found.count > 0;
}
