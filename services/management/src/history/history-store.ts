import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import type { HistoryEntry } from "../flags/flag.ts";
import { afterEverySequence, maxPageBytes } from "../page-bounds.ts";

/** The history of a flag's state in an environment, in PostgreSQL, the newest entry first. */
export type StateScope = { flagId: string; environmentId: string };

/** Where a state is, if it is in the project; `projectId` null means in any. */
export async function findStateScope(
  sql: Sql,
  scope: StateScope & { projectId: string | null },
): Promise<StateScope | undefined> {
  const [found] = await sql<StateScope[]>`
    select state.flag_id as "flagId", state.environment_id as "environmentId"
    from flag_states as state
    join flags as flag on flag.id = state.flag_id
    where state.flag_id = ${scope.flagId}
      and state.environment_id = ${scope.environmentId}
      and flag.project_id = coalesce(${scope.projectId}::uuid, flag.project_id)`;
  return found;
}

/** Where an entry stands in the order of its history; undefined when it is none of this history. */
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
 * Entries from the newest, or from the one before `beforeSequence`, and whether there are older ones. A
 * page ends early where it would become too long.
 */
export async function listHistory(
  sql: Sql,
  scope: StateScope,
  page: { beforeSequence: number | null; limit: number },
): Promise<{ entries: HistoryEntry[]; more: boolean }> {
  const rows = await sql<(HistoryEntry & { available: number })[]>`
    select id, "flagId", "environmentId", enabled, "rolloutPercentage", "targetingRules",
      "changeType", "changedBy", "changedAt", available
    from (
      select found.*, count(*) over () as available,
        sum(octet_length(found."targetingRules"::text)) over (
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
  const entries = rows.slice(0, page.limit).map(({ available: _, ...entry }) => entry);
  return { entries, more: (rows[0]?.available ?? 0) > entries.length };
}

/** The newest entries of a state that is locked. */
export async function readNewestEntries(
  tx: Transaction,
  scope: StateScope,
  count: number,
): Promise<HistoryEntry[]> {
  return tx<HistoryEntry[]>`
    select ${columns}
    from history as entry
    where entry.flag_id = ${scope.flagId} and entry.environment_id = ${scope.environmentId}
    order by entry.sequence desc
    limit ${count}`;
}

const columns = fragment`
  entry.id, entry.flag_id as "flagId", entry.environment_id as "environmentId", entry.enabled,
  entry.rollout_percentage as "rolloutPercentage", entry.targeting_rules as "targetingRules",
  entry.change_type as "changeType", entry.changed_by as "changedBy",
  entry.changed_at as "changedAt"`;

/**
 * Records where the chains of states end that are deleted together with their environment, project or organization,
 * in the transaction that deletes them. Verification compares the chains with these ends. The deletion of a single
 * flag needs none, because its entries in the audit log contain the last states.
 */
export async function endHistory(tx: Transaction, scopes: readonly StateScope[]): Promise<void> {
  await tx`
    select end_history(${scopes.map(({ flagId }) => flagId)}::uuid[],
      ${scopes.map(({ environmentId }) => environmentId)}::uuid[])`;
}
