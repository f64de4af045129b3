import { type FlagOrder, type FlagType, type Protection, stateOf } from "@halyard/contracts";
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
import { largestValueBytes, valueBytes } from "./variations.ts";

type Row = Omit<Flag, "updatedAt"> &
  Omit<StoredState, "version" | "updatedAt"> & {
    updatedAt: Date;
    stateVersion: number;
    stateUpdatedAt: Date;
    environmentName: string;
    protection: Protection | null;
    protectedAt: Date | null;
    lastEvaluatedAt: Date | null;
  };

/** Includes bulk evaluations, which are recorded once per environment, since the creation of the flag. */
const lastEvaluatedAt = fragment`
  greatest(
    flag_seen.evaluated_at,
    case when environment_seen.evaluated_at >= flag.created_at
      then environment_seen.evaluated_at end
  )`;

/** The columns of a flag's values, which its snapshot entries contain. */
export const variationColumns = fragment`
  flag.value_type as "valueType", flag.variations, flag.variations_version as "variationsVersion",
  flag.variations_changed_at as "variationsChangedAt"`;

const columns = fragment`
  flag.id, project.organization_id as "organizationId", flag.project_id as "projectId", flag.key,
  flag.name, flag.description, flag.type, ${variationColumns},
  flag.tags, flag.owner, flag.archived_at as "archivedAt",
  flag.version, flag.last_event_at as "lastEventAt",
  flag.created_at as "createdAt", flag.updated_at as "updatedAt",
  state.flag_id as "flagId", state.environment_id as "environmentId", state.content,
  state.version as "stateVersion", state.updated_at as "stateUpdatedAt",
  environment.name as "environmentName", environment.protection,
  environment.protected_at as "protectedAt",
  ${lastEvaluatedAt} as "lastEvaluatedAt"`;

const lastSeen = fragment`
  left join environments_last_seen as environment_seen
    on environment_seen.environment_id = state.environment_id
  left join flags_last_seen as flag_seen
    on flag_seen.flag_id = state.flag_id and flag_seen.environment_id = state.environment_id`;

/** The content of `initialContentOf`. */
const initialContentOfFlag = fragment`
  case when flag.variations is null then ${json(initialContent)}
  else ${json(initialContent)} || jsonb_build_object(
    'serve', jsonb_build_object('variation', flag.variations -> 0 -> 'key'),
    'off_variation',
      case when jsonb_array_length(flag.variations) > 1 then flag.variations -> -1 -> 'key' end)
  end`;

/**
 * Flags with their states. In an environment that is still being filled, a flag without a stored state has the initial
 * one.
 */
export const flagsWithStates = fragment`
  flags as flag
  join projects as project on project.id = flag.project_id
  join environments as environment on environment.project_id = flag.project_id
  left join flag_states as stored
    on stored.flag_id = flag.id and stored.environment_id = environment.id
  left join environment_fills as fill
    on fill.environment_id = environment.id and fill.after_key < flag.key
  join lateral (
    select flag.id as flag_id, environment.id as environment_id,
      coalesce(stored.content, ${initialContentOfFlag}) as content,
      coalesce(stored.version, flag.version) as version,
      coalesce(stored.updated_at, environment.created_at) as updated_at
  ) as state on stored.flag_id is not null or fill.environment_id is not null`;

const tables = fragment`${flagsWithStates} ${lastSeen}`;

export async function findFlag(
  sql: Sql | Transaction,
  scope: FlagScope,
): Promise<FlagInEnvironment | undefined> {
  const [row] = await sql<Row[]>`
    select ${columns}
    from ${tables}
    where flag.id = ${scope.flagId}
      and flag.project_id = ${scope.projectId}
      and state.environment_id = ${scope.environmentId}`;
  return row && fromRow(row);
}

/** A locked flag. `lacksStates` is true if the fill of an environment has not reached it. */
export type LockedFlag = FlagInEnvironment & { lacksStates: boolean };

export async function lockFlag(tx: Transaction, scope: FlagScope): Promise<LockedFlag | undefined> {
  const [locked] = await lockFlags(tx, { ...scope, flagIds: [scope.flagId] });
  return locked;
}

/**
 * Reads and locks flags and their states for a change, in the order of their ids, so that transactions do not wait for
 * each other in a circle. One statement locks both rows of a flag, because PostgreSQL rereads locked rows after a wait.
 * A row without a lock would be as old as the start of the statement. The environment is locked too, so that its
 * protection cannot change before the transaction ends.
 */
export async function lockFlags(
  tx: Transaction,
  scope: Omit<FlagScope, "flagId"> & { flagIds: readonly string[] },
): Promise<LockedFlag[]> {
  const rows = await tx<(Row & { lacksStates: boolean })[]>`
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
    where flag.id = any(${scope.flagIds}::uuid[])
      and flag.project_id = ${scope.projectId}
      and state.environment_id = ${scope.environmentId}
    order by flag.id
    for update of flag, state for share of environment`;
  return rows.map(({ lacksStates, ...row }) => ({ ...fromRow(row), lacksStates }));
}

/**
 * Locks flags of a project in the order of their ids, with or without states. Transactions that insert missing states
 * call it first: an insert locks the sum of the organization's bytes, after which no flag may be locked.
 */
export async function lockRows(
  tx: Transaction,
  { projectId, flagIds }: { projectId: string; flagIds: readonly string[] },
): Promise<void> {
  await tx`
    select from flags
    where id = any(${flagIds}::uuid[]) and project_id = ${projectId}
    order by id
    for update`;
}

/** Returns the number of bytes of the states and values of flags in an environment, as JSON in the database. */
export async function measureStates(
  tx: Transaction,
  { environmentId, flagIds }: { environmentId: string; flagIds: readonly string[] },
): Promise<number> {
  const [row] = await tx<[{ bytes: number }]>`
    select coalesce(sum(octet_length(content::text) + value_bytes), 0)::integer as bytes
    from flag_states
    where flag_id = any(${flagIds}::uuid[]) and environment_id = ${environmentId}`;
  return row.bytes;
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

/** Position of a flag in a list: its value in the order of the list, and its key. */
export type Position = { value: string; key: string };

/** A page of a list of flags, and the position of its last flag if others follow. */
export type FlagPage = { flags: ListedFlag[]; last: Position | undefined };

export type FlagSelection = {
  projectId: string;
  /** The environment of the listed states. */
  environmentId: string;
  order: FlagOrder;
  flagKey?: string | undefined;
  /** Selects the flags that have all of these tags. */
  tags?: readonly string[] | undefined;
  owner?: string | undefined;
  type?: FlagType | undefined;
  archived?: boolean | undefined;
  /** Selects the flags that are older than this instant, were not evaluated since, and that no other flag requires. */
  unusedSince?: Date | undefined;
  /** The environments whose states are summarized: that of the listed states, or all of the project. */
  summarized?: "own" | "all" | undefined;
};

/** Values by which lists are ordered. Instants have milliseconds, like cursors. */
const orders = {
  key: fragment`flag.key`,
  name: fragment`flag.name collate "C"`,
  created_at: fragment`date_trunc('milliseconds', flag.created_at)`,
  updated_at: fragment`date_trunc('milliseconds', flag.updated_at)`,
  last_evaluated_at: fragment`date_trunc('milliseconds', coalesce(${lastEvaluatedAt}, 'epoch'))`,
};

/** Returns the name of an order, and whether it is descending. */
export function parseOrder(order: FlagOrder): { name: keyof typeof orders; descending: boolean } {
  const descending = order.startsWith("-");
  return { name: (descending ? order.slice(1) : order) as keyof typeof orders, descending };
}

/** Matches the flags after a position. Flags with the same value are in the order of their keys. */
function isAfter({ name, descending }: ReturnType<typeof parseOrder>, after: Position | undefined) {
  if (after === undefined) return fragment``;
  const beyond = descending ? fragment`<` : fragment`>`;
  if (name === "key") return fragment`and flag.key ${beyond} ${after.key}`;
  const value =
    name === "name" ? fragment`${after.value}::text` : fragment`${after.value}::text::timestamptz`;
  return fragment`and (${orders[name]} ${beyond} ${value}
    or (${orders[name]} = ${value} and flag.key > ${after.key}))`;
}

/**
 * Matches the flags with the selected settings. A setting that is not given is null, so that it needs no other plan. The
 * key is a condition of its own, because its index finds the flag.
 */
function hasSettings(selection: FlagSelection) {
  const { flagKey, tags, owner, type, archived } = selection;
  const withKey = flagKey === undefined ? fragment`` : fragment`and flag.key = ${flagKey}`;
  const given = <T>(filter: T | undefined) => filter ?? null;
  return fragment`
    ${withKey}
    and (${given(tags)}::text[] is null or flag.tags @> ${given(tags)}::text[])
    and (${given(owner)}::text is null or flag.owner = ${given(owner)}::text)
    and (${given(type)}::text is null or flag.type = ${given(type)}::text)
    and (${given(archived)}::boolean is null
      or (flag.archived_at is not null) = ${given(archived)}::boolean)`;
}

/**
 * Reads the flags after a position: at most `limit`, and fewer if their states and values together exceed `maxBytes`.
 */
export async function listFlags(
  sql: Sql,
  selection: FlagSelection,
  page: { after: Position | undefined; limit: number; maxBytes: number },
): Promise<FlagPage> {
  const { unusedSince } = selection;
  const order = parseOrder(selection.order);
  const direction = order.descending ? fragment`desc` : fragment`asc`;
  const unused =
    unusedSince === undefined ? fragment`` : isUnusedSince(unusedSince, selection.projectId);
  const rows = await sql<ListedRow[]>`
    select * ${summariesOf(selection)}
    from (
      select found.*, count(*) over ()::integer as available,
        coalesce(
          sum(octet_length(found.content::text) + found."valueBytes") over (
            order by found."sortedBy" ${direction}, found.key
            rows between unbounded preceding and 1 preceding
          ),
          0
        ) as "bytesBefore"
      from (
        select ${columns}, flag.value_bytes as "valueBytes", ${orders[order.name]} as "sortedBy"
        from ${tables}
        where flag.project_id = ${selection.projectId}
          and state.environment_id = ${selection.environmentId}
          ${isAfter(order, page.after)} ${hasSettings(selection)} ${unused}
        order by ${orders[order.name]} ${direction}, flag.key
        limit ${page.limit + 1}
      ) as found
    ) as measured
    where "bytesBefore" < ${page.maxBytes}
    order by "sortedBy" ${direction}, key`;
  const listed = rows.slice(0, page.limit);
  const more = (rows[0]?.available ?? 0) > listed.length;
  return { flags: listed.map(fromListedRow), last: more ? positionOf(listed.at(-1)) : undefined };
}

function positionOf(row: ListedRow | undefined): Position | undefined {
  if (row === undefined) return undefined;
  const { sortedBy, key } = row;
  return { value: typeof sortedBy === "string" ? sortedBy : sortedBy.toISOString(), key };
}

type ListedRow = Row & {
  sortedBy: string | Date;
  available: number;
  valueBytes: number;
  bytesBefore: number;
  summaries?: (Omit<StoredSummary, "updatedAt"> & { updatedAt: string })[];
};

/**
 * Matches flags that are older than an instant, were not evaluated since, and that no other flag requires. An evaluation of
 * all flags in one environment counts for each of them. Evaluations and requirements in deleted environments do not
 * count.
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
  )
  and not exists (
    select from environments as any_environment
    join flag_references as reference on reference.environment_id = any_environment.id
    where any_environment.project_id = ${projectId}
      and reference.kind = 'flag' and reference.key = flag.key
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
 * ends, because the lock for adding, changing or deleting an environment conflicts with this one.
 */
export async function holdEnvironments(
  tx: Transaction,
  projectId: string,
): Promise<FlagEnvironment[]> {
  const held = await tx`select from projects where id = ${projectId} for key share`;
  if (held.count === 0) return [];
  return tx<FlagEnvironment[]>`
    select id, name, protection, protected_at as "protectedAt"
    from environments where project_id = ${projectId} order by id`;
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
    insert into flags (id, project_id, key, name, description, type, value_type, variations,
      value_bytes, largest_value_bytes, tags, owner, version, last_event_at, created_at, updated_at)
    values (${flag.id}, ${flag.projectId}, ${flag.key}, ${flag.name}, ${flag.description},
      ${flag.type}, ${flag.valueType}, ${flag.variations && json(flag.variations)},
      ${valueBytes(flag)}, ${largestValueBytes(flag)}, ${flag.tags}, ${flag.owner}, ${flag.version},
      ${flag.lastEventAt}, ${flag.createdAt}, ${flag.updatedAt})
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
          tags = ${flag.tags}, owner = ${flag.owner}, archived_at = ${flag.archivedAt},
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

/** Writes the variations of a locked flag, whose values count in each environment. */
export async function updateVariations(tx: Transaction, flag: Flag): Promise<void> {
  const bytes = valueBytes(flag);
  await Promise.all([
    tx`
      update flags
      set variations = ${flag.variations && json(flag.variations)},
          variations_version = ${flag.variationsVersion},
          variations_changed_at = ${flag.variationsChangedAt},
          value_bytes = ${bytes}, largest_value_bytes = ${largestValueBytes(flag)}
      where id = ${flag.id}`,
    tx`update flag_states set value_bytes = ${bytes} where flag_id = ${flag.id}`,
  ]);
}

/** Returns the bytes of the largest values of a project's flags together, which an answer with all values contains. */
export async function sumLargestValues(tx: Transaction, projectId: string): Promise<number> {
  const [row] = await tx<[{ bytes: number }]>`
    select coalesce(sum(largest_value_bytes), 0)::integer as bytes
    from flags where project_id = ${projectId} and value_type <> 'boolean'`;
  return row.bytes;
}

/** Returns the bytes that the initial states of a project's flags add in a new environment. */
export async function sumInitialBytes(tx: Transaction, projectId: string): Promise<number> {
  const [row] = await tx<[{ bytes: number }]>`
    select coalesce(
      sum(value_bytes + octet_length(variations -> 0 ->> 'key') + ${oneVariationBytes}), 0
    )::integer as bytes
    from flags where project_id = ${projectId} and value_type <> 'boolean'`;
  return row.bytes;
}

/** Length of `serve` with one variation as JSON, without the variation's key. */
const oneVariationBytes = JSON.stringify({ variation: "" }).length;

/** Writes the settings of locked flags. */
export async function updateSettings(tx: Transaction, flags: readonly Flag[]): Promise<void> {
  await tx`
    update flags as flag
    set tags = changed.tags, owner = changed.owner, archived_at = changed."archivedAt",
        version = changed.version, last_event_at = changed."lastEventAt",
        updated_at = changed."updatedAt"
    from jsonb_to_recordset(${json(flags.map(({ variations: _, ...settings }) => settings))}) as changed (
      id uuid, tags text[], owner text, "archivedAt" timestamptz, version bigint,
      "lastEventAt" timestamptz, "updatedAt" timestamptz)
    where flag.id = changed.id`;
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
    insert into flag_states (flag_id, environment_id, content, version, updated_at, value_bytes)
    select flag.id, "environmentId", state.content, state.version, state."updatedAt", flag.value_bytes
    from jsonb_to_recordset(${json(states)}) as state (
      "flagId" uuid, "environmentId" uuid, content jsonb, version bigint, "updatedAt" timestamptz)
    join flags as flag on flag.id = state."flagId"`;
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
  sortedBy: _,
  available: __,
  valueBytes: ___,
  bytesBefore: ____,
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
  const { stateVersion, stateUpdatedAt, lastEvaluatedAt, ...others } = row;
  const { environmentName: name, protection, protectedAt, ...rest } = others;
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
    environment: { id: environmentId, name, protection, protectedAt },
    lastEvaluatedAt,
  };
}
