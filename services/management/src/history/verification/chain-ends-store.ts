import type { Sql } from "@halyard/postgres";
import { nilId } from "./chain-store.ts";
import type { ChainPlace, NamedEntry } from "./link.ts";

/**
 * What says how a chain has to end: the state that the flag is in now, or the audit log's line about its
 * deletion. Each page is a statement of its own, and what belongs together was written in one
 * transaction, so changes that go on meanwhile make no difference.
 */
export type ChainEnd = ChainPlace & {
  newest: NamedEntry | undefined;
  /** Whether the newest entry is what it has to be. */
  agrees: boolean;
};

type EndRow = ChainPlace & { id: string | null; changedAt: Date | null; agrees: boolean };

const endsPerPage = 500;

/** All states, and whether each is what its newest entry says, down to the moment of the change. */
export function readStates(sql: Sql): AsyncGenerator<ChainEnd[]> {
  return inPages(async (last) => {
    const rows = await sql<EndRow[]>`
      select state.flag_id as "flagId", state.environment_id as "environmentId",
        newest.id, newest.changed_at as "changedAt",
        (newest.enabled, newest.rollout_percentage, newest.targeting_rules, newest.changed_at)
          is not distinct from
          (state.enabled, state.rollout_percentage, state.targeting_rules, state.updated_at)
          as agrees
      from flag_states as state
      left join lateral (
        select * from history as entry
        where entry.flag_id = state.flag_id and entry.environment_id = state.environment_id
        order by entry.sequence desc
        limit 1
      ) as newest on true
      where (state.flag_id, state.environment_id)
        > (${last.flagId}::uuid, ${last.environmentId}::uuid)
      order by state.flag_id, state.environment_id
      limit ${endsPerPage}`;
    return rows.map(endOf);
  });
}

/**
 * All deletions that the audit log tells of, and whether the newest entry of each chain is what the flag
 * was then. A state may well have been the same before, so the moment of its last change has to be the
 * same as well; where the log knows of no change, the chain has no more than its first entry, or retention
 * removed the change from the log.
 *
 * The environment is not compared with `=`, or PostgreSQL might go by it and read the changes of all its
 * flags.
 */
export function readDeletions(sql: Sql): AsyncGenerator<ChainEnd[]> {
  return inPages(async (last) => {
    const rows = await sql<EndRow[]>`
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
 * Reads all flags, each with the environments in which it has no state although there should be one. A new
 * environment has no states after the position of its fill.
 */
export function readFlags(
  sql: Sql,
): AsyncGenerator<(ChainPlace & { withoutState: readonly string[] })[]> {
  return inPages(
    (last) => sql<(ChainPlace & { withoutState: string[] })[]>`
      select flag.id as "flagId", ${nilId} as "environmentId",
        (
          select coalesce(jsonb_agg(environment.id order by environment.id), '[]')
          from environments as environment
          where environment.project_id = flag.project_id
            -- Only the owner of the tables and superusers see deleted environments.
            and environment.deleted_at is null
            and not exists (
              select from flag_states as state
              where state.flag_id = flag.id and state.environment_id = environment.id
            )
            and not exists (
              select from environment_fills as fill
              where fill.environment_id = environment.id and fill.after_key < flag.key
            )
        ) as "withoutState"
      from flags as flag
      where flag.id > ${last.flagId}::uuid
      order by flag.id
      limit ${endsPerPage}`,
  );
}

async function* inPages<Row extends ChainPlace>(
  readAfter: (last: ChainPlace) => PromiseLike<Row[]>,
): AsyncGenerator<Row[]> {
  let last: ChainPlace = { flagId: nilId, environmentId: nilId };
  for (;;) {
    const page = await readAfter(last);
    const end = page.at(-1);
    if (end === undefined) return;
    yield page;
    last = end;
  }
}

function endOf({ id, changedAt, ...end }: EndRow): ChainEnd {
  return { ...end, newest: id === null || changedAt === null ? undefined : { id, changedAt } };
}
