import type { Sql } from "@halyard/postgres";
import { afterEverySequence, longestPageBytes } from "./page-bounds.ts";
import type { RecordedChange } from "./recorded-change.ts";

/** Where a change stands in the order of its project's audit log; undefined when it is not in it. */
export async function findChangeSequence(
  sql: Sql,
  address: { projectId: string; changeId: string },
): Promise<number | undefined> {
  const [found] = await sql<{ sequence: number }[]>`
    select sequence from changes
    where id = ${address.changeId} and project_id = ${address.projectId}`;
  return found?.sequence;
}

/**
 * Changes of a project from the newest, or from the one before `beforeSequence`, and whether there are
 * older ones. A page ends early where it would become too long.
 */
export async function listChanges(
  sql: Sql,
  which: { projectId: string; flagId?: string | undefined; environmentId?: string | undefined },
  page: { beforeSequence: number | null; limit: number },
): Promise<{ changes: RecordedChange[]; more: boolean }> {
  const ofFlag = which.flagId === undefined ? sql`` : sql`and change.flag_id = ${which.flagId}`;
  const ofEnvironment =
    which.environmentId === undefined
      ? sql``
      : sql`and change.environment_id = ${which.environmentId}`;
  const rows = await sql<(RecordedChange & { available: number })[]>`
    select id, action, cause, flag_id as "flagId", flag_key as "flagKey", key_id as "keyId",
      environment_id as "environmentId",
      jsonb_build_object('id', actor_id, 'email', actor_email) as actor,
      state_before as before, state_after as after, changed_at as "changedAt", available
    from (
      select found.*, count(*) over () as available,
        sum(
          coalesce(octet_length(found.state_before::text), 0)
            + coalesce(octet_length(found.state_after::text), 0)
        ) over (
          order by found.sequence desc
          rows between unbounded preceding and 1 preceding
        ) as bytes_before
      from (
        select *
        from changes as change
        where change.project_id = ${which.projectId}
          ${ofFlag}
          ${ofEnvironment}
          and change.sequence < coalesce(${page.beforeSequence}::bigint, ${afterEverySequence}::bigint)
        order by change.sequence desc
        limit ${page.limit + 1}
      ) as found
    ) as measured
    where coalesce(bytes_before, 0) < ${longestPageBytes}
    order by sequence desc`;
  const changes = rows.slice(0, page.limit).map(({ available: _, ...change }) => change);
  return { changes, more: (rows[0]?.available ?? 0) > changes.length };
}
