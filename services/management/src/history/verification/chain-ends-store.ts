import type { Sql } from "@halyard/postgres";
import type { ChainScope, NamedEntry } from "./chain.ts";
import { nilId } from "./chain-store.ts";

/**
 * The newest entry of a chain, compared with the required end. The required end is one of these:
 *
 * - the current state of the flag
 * - the deletion of the flag in the audit log
 * - the end that was recorded when the project or environment was deleted
 *
 * Each page is a separate statement. Concurrent changes do not matter, because all rows of a change are committed
 * together.
 */
export type ChainEnd = ChainScope & {
  newest: NamedEntry | undefined;
  /** True if the newest entry matches the required end. */
  agrees: boolean;
};

/** The end of the chain of a current state. */
export type LiveEnd = ChainEnd & {
  /** True if the newest entry is the last change to the state in the audit log. */
  isAudited: boolean;
};

/** The recorded end of a chain whose environment or project was deleted. */
export type RecordedEnd = ChainEnd & { hasState: boolean };

type EndRow<End extends ChainEnd> = Omit<End, "newest"> & {
  id: string | null;
  changedAt: Date | null;
};

const endsPerPage = 500;

/**
 * Reads the chain ends of all states. The newest entry must equal the state, including the time of the change, and the
 * last change to the state in the audit log. If the log contains no change, the entry must be the first of its chain,
 * or retention must have removed the change from the log. The audit log is read once per flag of a page.
 */
export function readStates(sql: Sql): AsyncGenerator<LiveEnd[]> {
  return inPages(async (last) => {
    const rows = await sql<EndRow<LiveEnd>[]>`
      with page as materialized (
        select state.*, flag.project_id
        from flag_states as state
        join flags as flag on flag.id = state.flag_id
        where (state.flag_id, state.environment_id)
          > (${last.flagId}::uuid, ${last.environmentId}::uuid)
        order by state.flag_id, state.environment_id
        limit ${endsPerPage}
      ), last_change as materialized (
        select flag.flag_id, change.environment_id,
          (array_agg(change.id order by change.changed_at desc))[1] as id
        from (select distinct project_id, flag_id from page) as flag
        cross join lateral (
          select id, environment_id, changed_at
          from changes
          where project_id = flag.project_id and flag_id = flag.flag_id and action = 'state'
          offset 0
        ) as change
        group by flag.flag_id, change.environment_id
      )
      select state.flag_id as "flagId", state.environment_id as "environmentId",
        newest.id, newest.changed_at as "changedAt",
        (newest.enabled, newest.rollout_percentage, newest.targeting_rules, newest.changed_at)
          is not distinct from
          (state.enabled, state.rollout_percentage, state.targeting_rules, state.updated_at)
          as agrees,
        case
          when last_change.id is null
            then newest.previous_hash = ''
              or newest.changed_at < (select removed_before from audit_retention)
          else newest.changed_at = change.changed_at
            and change.state_after = jsonb_build_object('enabled', newest.enabled,
              'rollout_percentage', newest.rollout_percentage,
              'targeting_rules', newest.targeting_rules)
        end as "isAudited"
      from page as state
      left join last_change on last_change.flag_id = state.flag_id
        and last_change.environment_id = state.environment_id
      left join changes as change on change.id = last_change.id
      left join lateral (
        select * from history as entry
        where entry.flag_id = state.flag_id and entry.environment_id = state.environment_id
        order by entry.sequence desc
        limit 1
      ) as newest on true
      order by state.flag_id, state.environment_id`;
    return rows.map(endOf);
  });
}

/** Reads the recorded ends of chains whose environment or project was deleted. */
export function readRecordedEnds(sql: Sql): AsyncGenerator<RecordedEnd[]> {
  return inPages(async (last) => {
    const rows = await sql<EndRow<RecordedEnd>[]>`
      select ended.flag_id as "flagId", ended.environment_id as "environmentId",
        newest.id, newest.changed_at as "changedAt",
        coalesce(newest.hash = ended.hash, false) as agrees,
        exists (
          select from flag_states as state
          where state.flag_id = ended.flag_id and state.environment_id = ended.environment_id
        ) as "hasState"
      from ended_history as ended
      left join lateral (
        select * from history as entry
        where entry.flag_id = ended.flag_id and entry.environment_id = ended.environment_id
        order by entry.sequence desc
        limit 1
      ) as newest on true
      where (ended.flag_id, ended.environment_id)
        > (${last.flagId}::uuid, ${last.environmentId}::uuid)
      order by ended.flag_id, ended.environment_id
      limit ${endsPerPage}`;
    return rows.map(endOf);
  });
}

/**
 * Reads the deletions in the audit log. The newest entry of each chain must equal the state at the deletion. An older
 * entry may contain the same state, so the time of its last change must match too. If the log contains no change, the
 * entry must be the first of its chain, or retention must have removed the change from the log.
 *
 * The environment is compared with `is not distinct from`, not with `=`. Otherwise PostgreSQL might use an index on the
 * environment and read the changes of all its flags.
 */
export function readDeletions(sql: Sql): AsyncGenerator<ChainEnd[]> {
  return inPages(async (last) => {
    const rows = await sql<EndRow<ChainEnd>[]>`
      select deletion.flag_id as "flagId", deletion.environment_id as "environmentId",
        newest.id, newest.changed_at as "changedAt",
        coalesce(
          deletion.state_before @> jsonb_build_object('enabled', newest.enabled,
            'rollout_percentage', newest.rollout_percentage)
            and deletion.state_before -> 'targeting_rules' = newest.targeting_rules
            and case
              when last_change.changed_at is null
                then newest.previous_hash = ''
                  or newest.changed_at < (select removed_before from audit_retention)
              else newest.changed_at = last_change.changed_at
            end,
          false
        ) as agrees
      from changes as deletion
      left join lateral (
        select * from history as entry
        where entry.flag_id = deletion.flag_id and entry.environment_id = deletion.environment_id
        order by entry.sequence desc
        limit 1
      ) as newest on true
      cross join lateral (
        select max(change.changed_at) as changed_at
        from changes as change
        where change.project_id = deletion.project_id and change.flag_id = deletion.flag_id
          and change.environment_id is not distinct from deletion.environment_id
          and change.action = 'state'
      ) as last_change
      where deletion.action = 'deleted'
        and (deletion.flag_id, deletion.environment_id)
          > (${last.flagId}::uuid, ${last.environmentId}::uuid)
      order by deletion.flag_id, deletion.environment_id
      limit ${endsPerPage}`;
    return rows.map(endOf);
  });
}

/**
 * Reads all flags, each with the environments in which its state is missing. A new environment has no states after the
 * position of its fill. An environment that is being deleted has no state where an end is recorded.
 */
export function readFlags(
  sql: Sql,
): AsyncGenerator<(ChainScope & { withoutState: readonly string[] })[]> {
  return inPages(
    (last) => sql<(ChainScope & { withoutState: string[] })[]>`
      select flag.id as "flagId", ${nilId} as "environmentId",
        (
          select coalesce(jsonb_agg(environment.id order by environment.id), '[]')
          from environments as environment
          where environment.project_id = flag.project_id
            -- Excludes deleted environments, which only the owner of the tables and superusers see.
            and environment.deleted_at is null
            and not exists (
              select from flag_states as state
              where state.flag_id = flag.id and state.environment_id = environment.id
            )
            and not exists (
              select from environment_fills as fill
              where fill.environment_id = environment.id and fill.after_key < flag.key
            )
            and not exists (
              select from ended_history as ended
              where ended.flag_id = flag.id and ended.environment_id = environment.id
            )
        ) as "withoutState"
      from flags as flag
      where flag.id > ${last.flagId}::uuid
      order by flag.id
      limit ${endsPerPage}`,
  );
}

async function* inPages<Row extends ChainScope>(
  readAfter: (last: ChainScope) => PromiseLike<Row[]>,
): AsyncGenerator<Row[]> {
  let last: ChainScope = { flagId: nilId, environmentId: nilId };
  for (;;) {
    const page = await readAfter(last);
    const end = page.at(-1);
    if (end === undefined) return;
    yield page;
    last = end;
  }
}

function endOf<End extends ChainEnd>({ id, changedAt, ...end }: EndRow<End>): End {
  const newest = id === null || changedAt === null ? undefined : { id, changedAt };
  return { ...end, newest } as unknown as End;
}
