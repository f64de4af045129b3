import { stateOf } from "@halyard/contracts";
import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import {
  type Decision,
  type Flag,
  type FlagEnvironment,
  type FlagInEnvironment,
  type FlagScope,
  type HistoryEntry,
  initialContent,
  type ListedFlag,
  type StoredState,
  type StoredSummary,
} from "./flag.ts";

type Row = Omit<Flag, "updatedAt"> &
  Omit<StoredState, "version" | "updatedAt"> & {
    updatedAt: Date;
    stateVersion: number;
    stateUpdatedAt: Date;
    environmentName: string;
    lastEvaluatedAt: Date | null;
  };

/** `lastEvaluatedAt` includes bulk evaluations, which are recorded once per environment, since the creation of the flag. */
const columns = fragment`
  flag.id, project.organization_id as "organizationId", flag.project_id as "projectId", flag.key,
  flag.name, flag.description, flag.type, flag.version, flag.last_event_at as "lastEventAt",
  flag.created_at as "createdAt", flag.updated_at as "updatedAt",
  state.flag_id as "flagId", state.environment_id as "environmentId", state.content,
  state.version as "stateVersion", state.updated_at as "stateUpdatedAt",
  environment.name as "environmentName",
  greatest(
    flag_seen.evaluated_at,
    case when environment_seen.evaluated_at >= flag.created_at
      then environment_seen.evaluated_at end
  ) as "lastEvaluatedAt"`;

const lastSeen = fragment`
  left join environments_last_seen as environment_seen
    on environment_seen.environment_id = state.environment_id
  left join flags_last_seen as flag_seen
    on flag_seen.flag_id = state.flag_id and flag_seen.environment_id = state.environment_id`;

/**
 * Flags with their states. In an environment that is still being filled, a flag without a stored state has the initial
 * one.
 */
const flagsWithStates = fragment`
  flags as flag
  join projects as project on project.id = flag.project_id
  join environments as environment on environment.project_id = flag.project_id
  left join flag_states as stored
    on stored.flag_id = flag.id and stored.environment_id = environment.id
  left join environment_fills as fill
    on fill.environment_id = environment.id and fill.after_key < flag.key
  join lateral (
    select flag.id as flag_id, environment.id as environment_id,
      coalesce(stored.content, ${json(initialContent)}) as content,
      coalesce(stored.version, flag.version) as version,
      coalesce(stored.updated_at, environment.created_at) as updated_at
  ) as state on stored.flag_id is not null or fill.environment_id is not null`;

const tables = fragment`${flagsWithStates} ${lastSeen}`;

export async function findFlag(sql: Sql, scope: FlagScope): Promise<FlagInEnvironment | undefined> {
  const [row] = await sql<Row[]>`
    select ${columns}
    from ${tables}
    where flag.id = ${scope.flagId}
      and flag.project_id = ${scope.projectId}
      and state.environment_id = ${scope.environmentId}`;
  return row && fromRow(row);
}

/**
 * Reads and locks a flag and its state for a change. One statement locks both rows, because PostgreSQL rereads locked
 * rows after a wait. A row without a lock would be as old as the start of the statement. `lacksStates` is true if the
 * fill of an environment has not reached the flag.
 */
export async function lockFlag(
  tx: Transaction,
  scope: FlagScope,
): Promise<(FlagInEnvironment & { lacksStates: boolean }) | undefined> {
  const [row] = await tx<(Row & { lacksStates: boolean })[]>`
    select ${columns},
      exists (
        select from environment_fills as fill
        where fill.project_id = flag.project_id and fill.after_key < flag.key
      ) as "lacksStates"
    from flags as flag
    join projects as project on project.id = flag.project_id
    join flag_states as state on state.flag_id = flag.id
    join environments as environment on environment.id = state.environment_id
    ${lastSeen}
    where flag.id = ${scope.flagId}
      and flag.project_id = ${scope.projectId}
      and state.environment_id = ${scope.environmentId}
    for update of flag, state`;
  if (row === undefined) return undefined;
  const { lacksStates, ...rest } = row;
  return { ...fromRow(rest), lacksStates };
}

/** Returns the states of a flag in all environments. The caller has locked the flag, so none of them can change. */
export async function readStates(tx: Transaction, flagId: string): Promise<StoredState[]> {
  const states = await tx<StoredState[]>`
    select state.flag_id as "flagId", state.environment_id as "environmentId", state.content,
      state.version, state.updated_at as "updatedAt"
    from flag_states as state
    where state.flag_id = ${flagId}
    order by state.environment_id`;
  return states.map((state) => ({ ...state, content: stateOf(state.content) }));
}

/** A page of flags in the order of their keys. `more` is true if flags follow. */
export type FlagPage = { flags: ListedFlag[]; more: boolean };

export type FlagSelection = {
  projectId: string;
  /** The environment of the listed states. */
  environmentId: string;
  flagKey?: string | undefined;
  /** Selects the flags that are older than this instant and were not evaluated since, in any environment. */
  unusedSince?: Date | undefined;
  /** The environments whose states are summarized: that of the listed states, or all of the project. */
  summarized?: "own" | "all" | undefined;
};

/** Reads the flags after a key: at most `limit`, and fewer if their states together exceed `maxBytes`. */
export async function listFlags(
  sql: Sql,
  selection: FlagSelection,
  page: { afterKey: string; limit: number; maxBytes: number },
): Promise<FlagPage> {
  const { flagKey, unusedSince } = selection;
  const withKey = flagKey === undefined ? fragment`` : fragment`and flag.key = ${flagKey}`;
  const unused =
    unusedSince === undefined ? fragment`` : isUnusedSince(unusedSince, selection.projectId);
  const rows = await sql<ListedRow[]>`
    select * ${summariesOf(selection)}
    from (
      select found.*, count(*) over ()::integer as available,
        coalesce(
          sum(octet_length(found.content::text)) over (
            order by found.key
            rows between unbounded preceding and 1 preceding
          ),
          0
        ) as "bytesBefore"
      from (
        select ${columns}
        from ${tables}
        where flag.project_id = ${selection.projectId}
          and state.environment_id = ${selection.environmentId}
          and flag.key > ${page.afterKey}
          ${withKey} ${unused}
        order by flag.key
        limit ${page.limit + 1}
      ) as found
    ) as measured
    where "bytesBefore" < ${page.maxBytes}
    order by key`;
  const flags = rows.slice(0, page.limit).map(fromListedRow);
  return { flags, more: (rows[0]?.available ?? 0) > flags.length };
}

type ListedRow = Row & {
  available: number;
  bytesBefore: number;
  summaries?: (Omit<StoredSummary, "updatedAt"> & { updatedAt: string })[];
};

/**
 * Matches flags that are older than an instant and were not evaluated since. An evaluation of all flags in one
 * environment counts for each of them. Evaluations in deleted environments do not count.
 */
const isUnusedSince = (instant: Date, projectId: string) => fragment`
  and flag.created_at <= ${instant}
  and not exists (
    select from environments as any_environment
    join environments_last_seen as seen on seen.environment_id = any_environment.id
    where any_environment.project_id = ${projectId} and seen.evaluated_at > ${instant}
  )
  and not exists (
    select from flags_last_seen as seen
    join environments as any_environment on any_environment.id = seen.environment_id
    where seen.flag_id = flag.id and seen.evaluated_at > ${instant}
  )`;

/** Selects the states of each flag of a page as JSON, so that one snapshot contains the flag and its states. */
function summariesOf({ summarized, environmentId }: FlagSelection) {
  if (summarized === undefined) return fragment``;
  const own = summarized === "own" ? fragment`and environment.id = ${environmentId}` : fragment``;
  return fragment`, (
    select jsonb_agg(
      jsonb_build_object('environmentId', state.environment_id,
        'content', state.content - 'targeting_rules',
        'ruleCount', jsonb_array_length(state.content -> 'targeting_rules'),
        'version', state.version, 'updatedAt', state.updated_at)
      order by environment.created_at, environment.id
    )
    from ${flagsWithStates}
    where flag.id = measured.id ${own}
  ) as summaries`;
}

/**
 * Returns the environments of a project, or none if the project is deleted. They stay unchanged until the transaction
 * ends, because the lock for adding or deleting an environment conflicts with this one.
 */
export async function holdEnvironments(
  tx: Transaction,
  projectId: string,
): Promise<FlagEnvironment[]> {
  const held = await tx`select from projects where id = ${projectId} for key share`;
  if (held.count === 0) return [];
  return tx<FlagEnvironment[]>`
    select id, name from environments where project_id = ${projectId} order by id`;
}

export async function findFlagId(
  tx: Transaction,
  { projectId, key }: { projectId: string; key: string },
): Promise<string | undefined> {
  const [found] = await tx<{ id: string }[]>`
    select id from flags where project_id = ${projectId} and key = ${key}`;
  return found?.id;
}

/** Inserts a flag without its states. Returns false if its key is taken in the project. */
export async function insertFlag(tx: Transaction, flag: Flag): Promise<boolean> {
  const inserted = await tx`
    insert into flags (id, project_id, key, name, description, type, version, last_event_at,
      created_at, updated_at)
    values (${flag.id}, ${flag.projectId}, ${flag.key}, ${flag.name}, ${flag.description},
      ${flag.type}, ${flag.version}, ${flag.lastEventAt}, ${flag.createdAt}, ${flag.updatedAt})
    on conflict on constraint flag_key_taken do nothing`;
  return inserted.count > 0;
}

/** Inserts the states of a new flag, and the records of its creation. */
export async function insertStatesOfFlag(tx: Transaction, decision: Decision): Promise<void> {
  await Promise.all([insertStates(tx, decision.states), insertHistory(tx, decision.history)]);
}

/**
 * Writes a change to a locked flag, and to its state in one environment, with its record in the history. It is one
 * statement, because each further statement costs the client and the server more than its rows. The record copies the
 * stored content, which can be half a megabyte, so that it is sent once.
 */
export function updateFlag(tx: Transaction, decision: Decision): Promise<unknown> {
  const { flag } = decision;
  const [state] = decision.states;
  const [entry] = decision.history;
  return tx`
    with changed_flag as (
      update flags
      set name = ${flag.name}, description = ${flag.description}, type = ${flag.type},
          version = ${flag.version}, last_event_at = ${flag.lastEventAt},
          updated_at = ${flag.updatedAt}
      where id = ${flag.id}
    ), changed_state as (
      update flag_states
      set content = ${state === undefined ? null : json(state.content)},
          version = ${state?.version ?? null}, updated_at = ${state?.updatedAt ?? null}
      where flag_id = ${state?.flagId ?? null} and environment_id = ${state?.environmentId ?? null}
      returning flag_id, environment_id, content
    )
    insert into history (id, flag_id, environment_id, content, change_type, changed_by, changed_at)
    select ${entry?.id ?? null}::uuid, flag_id, environment_id, content,
      ${entry?.changeType ?? null}::text, ${entry?.changedBy ?? null}::uuid,
      ${entry?.changedAt ?? null}::timestamptz
    from changed_state`;
}

/** Deletes a locked flag with its states. */
export async function deleteFlag(tx: Transaction, decision: Decision): Promise<void> {
  await Promise.all([
    tx`delete from flags where id = ${decision.flag.id}`,
    tx`delete from flags_last_seen where flag_id = ${decision.flag.id}`,
  ]);
}

export async function insertStates(tx: Transaction, states: readonly StoredState[]): Promise<void> {
  await tx`
    insert into flag_states (flag_id, environment_id, content, version, updated_at)
    select "flagId", "environmentId", content, version, "updatedAt"
    from jsonb_to_recordset(${json(states)}) as state (
      "flagId" uuid, "environmentId" uuid, content jsonb, version bigint, "updatedAt" timestamptz)`;
}

export async function insertHistory(
  tx: Transaction,
  entries: readonly HistoryEntry[],
): Promise<void> {
  if (entries.length === 0) return;
  await tx`
    insert into history (id, flag_id, environment_id, content, change_type, changed_by, changed_at)
    select id, "flagId", "environmentId", content, "changeType", "changedBy", "changedAt"
    from jsonb_to_recordset(${json(entries)}) as entry (
      id uuid, "flagId" uuid, "environmentId" uuid, content jsonb, "changeType" text,
      "changedBy" uuid, "changedAt" timestamptz)`;
}

function fromListedRow({
  available: _,
  bytesBefore: __,
  summaries,
  ...row
}: ListedRow): ListedFlag {
  if (summaries === undefined) return fromRow(row);
  const read = summaries.map((state) => ({
    ...state,
    content: stateOf(state.content),
    updatedAt: new Date(state.updatedAt),
  }));
  return { ...fromRow(row), summaries: read };
}

function fromRow(row: Row): FlagInEnvironment {
  const { stateVersion, stateUpdatedAt, environmentName, lastEvaluatedAt, ...rest } = row;
  const { flagId, environmentId, content, ...flag } = rest;
  return {
    flag,
    state: {
      flagId,
      environmentId,
      content: stateOf(content),
      version: stateVersion,
      updatedAt: stateUpdatedAt,
    },
    environment: { id: environmentId, name: environmentName },
    lastEvaluatedAt,
  };
}
