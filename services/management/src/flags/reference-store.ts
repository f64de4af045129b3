import type {
  Audience,
  ReferredKeys,
  Requirement,
  ResolvedState,
  State,
  ValueType,
} from "@halyard/evaluation";
import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import { flagsWithStates } from "./flag-store.ts";
import type { RequirementGraph } from "./requirement-graph.ts";

/** References of states to audiences and flags, in PostgreSQL. Triggers of the database write their table. */

/** The audiences of a project, and the keys of the variations of its flags. */
export type Referred = {
  audiences: ReadonlySet<string>;
  flags: ReadonlyMap<string, readonly string[]>;
};

/** Finds the audiences and flags that a state refers to. */
export async function findReferred(
  sql: Sql | Transaction,
  projectId: string,
  { audiences, flags }: ReferredKeys,
): Promise<Referred> {
  const [foundAudiences, foundFlags] = await Promise.all([
    audiences.length === 0
      ? []
      : sql<{ key: string }[]>`
          select key from audiences where project_id = ${projectId} and key = any(${audiences})`,
    flags.length === 0
      ? []
      : sql<{ key: string; variations: string[] | null }[]>`
          select key, jsonb_path_query_array(variations, '$[*].key') as variations
          from flags where project_id = ${projectId} and key = any(${flags})`,
  ]);
  return {
    audiences: new Set(foundAudiences.map(({ key }) => key)),
    flags: new Map(foundFlags.map(({ key, variations }) => [key, variations ?? ["on", "off"]])),
  };
}

/**
 * Returns the requirements of the flags that require a flag, directly or through others, and of those that its required
 * flags require, in one environment of a project, or in each one, by the id of the environment. Unrelated requirements,
 * which can be many, are left out.
 */
export async function readRequirementGraphs(
  sql: Sql | Transaction,
  { projectId, environmentId }: { projectId: string; environmentId: string | null },
  { key, required }: { key: string; required: readonly string[] },
): Promise<Map<string, RequirementGraph>> {
  const rows = await sql<{ environmentId: string; key: string; required: string[] }[]>`
    with recursive scope (environment_id) as (
      select id from environments
      where project_id = ${projectId} and (${environmentId}::uuid is null or id = ${environmentId})
    ), above (environment_id, key) as (
      select environment_id, ${key}::text collate "C" from scope
      union
      select reference.environment_id, flag.key
      from above
      join flag_references as reference on reference.environment_id = above.environment_id
        and reference.kind = 'flag' and reference.key = above.key
      join flags as flag on flag.id = reference.flag_id
    ), below (environment_id, key) as (
      select environment_id, key collate "C" from scope, unnest(${required}::text[]) as given (key)
      union
      select reference.environment_id, reference.key
      from below
      join flags as flag on flag.project_id = ${projectId} and flag.key = below.key
      join flag_references as reference on reference.flag_id = flag.id
        and reference.environment_id = below.environment_id and reference.kind = 'flag'
    )
    select reference.environment_id as "environmentId", flag.key,
      array_agg(reference.key order by reference.key) as required
    from (table above union table below) as related
    join flags as flag on flag.project_id = ${projectId} and flag.key = related.key
    join flag_references as reference on reference.flag_id = flag.id
      and reference.environment_id = related.environment_id and reference.kind = 'flag'
    group by reference.environment_id, flag.key
    order by reference.environment_id, flag.key`;
  const byEnvironment = Map.groupBy(rows, (row) => row.environmentId);
  return new Map(
    [...byEnvironment].map(([id, found]) => [
      id,
      new Map(found.map((row) => [row.key, row.required])),
    ]),
  );
}

/** A state that refers to an audience or a flag. */
export type ReferringState = {
  flagId: string;
  flagKey: string;
  environmentId: string;
  environmentName: string;
};

const referringStates = fragment`
  flag_references as reference
  join environments as environment on environment.id = reference.environment_id
  join flags as flag on flag.id = reference.flag_id`;

const columns = fragment`
  flag.id as "flagId", flag.key as "flagKey", environment.id as "environmentId",
  environment.name as "environmentName"`;

/** Returns the states that refer to an audience or a flag, in the order of the keys of their flags: at most `limit`. */
export async function findReferringStates(
  sql: Sql | Transaction,
  referred: { projectId: string; kind: "audience" | "flag"; key: string },
  limit: number,
): Promise<{ states: ReferringState[]; total: number }> {
  const rows = await sql<(ReferringState & { total: number })[]>`
    select ${columns}, (count(*) over ())::integer as total
    from ${referringStates}
    where environment.project_id = ${referred.projectId}
      and reference.kind = ${referred.kind} and reference.key = ${referred.key}
    order by flag.key, environment.name
    limit ${limit}`;
  const states = rows.map(({ total: _, ...state }) => state);
  return { states, total: rows[0]?.total ?? 0 };
}

/** The requirements of a state that name one flag: its own, then those of its rules. */
const requirementsOn = (key: string) => fragment`
  jsonb_path_query_array(state.content, '$.requires[*] ? (@.flag == $key)', ${json({ key })})
  || jsonb_path_query_array(state.content,
    '$.targeting_rules[*].conditions[*] ? (@.flag == $key)', ${json({ key })})`;

/** Returns the states that require a flag, with these requirements. */
export function findRequiringStates(
  sql: Sql | Transaction,
  { projectId, key }: { projectId: string; key: string },
): Promise<(ReferringState & { requirements: Requirement[] })[]> {
  return sql<(ReferringState & { requirements: Requirement[] })[]>`
    select ${columns}, ${requirementsOn(key)} as requirements
    from ${referringStates}
    join flag_states as state
      on state.flag_id = reference.flag_id and state.environment_id = reference.environment_id
    where environment.project_id = ${projectId}
      and reference.kind = 'flag' and reference.key = ${key}
    order by flag.key, environment.name`;
}

/**
 * Returns whether all flags that require a flag in an environment, directly or through others, only turn off with it:
 * their states name it, and each other, in nothing but `requires` with `is: "on"`. A condition of a rule can turn a flag
 * on when it is not met, because a later rule then decides.
 */
export async function isOnlyRequiredOn(
  tx: Transaction,
  { key }: { key: string },
  environmentId: string,
): Promise<boolean> {
  const others = await tx`
    with recursive above (key) as (
      select ${key}::text collate "C"
      union
      select flag.key
      from above
      join flag_references as reference on reference.environment_id = ${environmentId}
        and reference.kind = 'flag' and reference.key = above.key
      join flags as flag on flag.id = reference.flag_id
    )
    select
    from above
    join flag_references as reference on reference.environment_id = ${environmentId}
      and reference.kind = 'flag' and reference.key = above.key
    join flag_states as state
      on state.flag_id = reference.flag_id and state.environment_id = reference.environment_id
    where jsonb_path_exists(state.content,
        '$.targeting_rules[*].conditions[*] ? (@.flag == $key)',
        jsonb_build_object('key', above.key))
      or jsonb_path_exists(state.content,
        '$.requires[*] ? (@.flag == $key && (@.is.type() == "array" || @.is != "on"))',
        jsonb_build_object('key', above.key))
    limit 1`;
  return others.count === 0;
}

/** Returns the states of flags in one environment of a project, or in each one. */
export function findStates(
  sql: Sql,
  scope: { projectId: string; environmentId: string | null; keys: readonly string[] },
): Promise<(ReferringState & { enabled: boolean })[]> {
  const { projectId, environmentId, keys } = scope;
  return sql<(ReferringState & { enabled: boolean })[]>`
    select ${columns}, (state.content -> 'enabled')::boolean as enabled
    from flags as flag
    join flag_states as state on state.flag_id = flag.id
    join environments as environment on environment.id = state.environment_id
    where flag.project_id = ${projectId} and flag.key = any(${keys})
      and (${environmentId}::uuid is null or environment.id = ${environmentId})`;
}

/**
 * Returns the states of flags and of all flags that they require, directly or through others, in one environment. One
 * statement reads them, so that a concurrent change cannot make them a circle. Returns undefined if they are larger than
 * `maxBytes` together.
 */
export async function findRequired(
  sql: Sql,
  { projectId, environmentId }: { projectId: string; environmentId: string },
  { keys, maxBytes }: { keys: readonly string[]; maxBytes: number },
): Promise<ResolvedState[] | undefined> {
  const rows = await sql<RequiredRow[]>`
    with recursive required (key) as (
      select key collate "C" from unnest(${keys}::text[]) as given (key)
      union
      select reference.key
      from required
      join flags as flag on flag.project_id = ${projectId} and flag.key = required.key
      join flag_references as reference
        on reference.flag_id = flag.id and reference.environment_id = ${environmentId}
        and reference.kind = 'flag'
    )
    select key, "valueType", variations, case when bytes <= ${maxBytes} then content end as content
    from (
      select flag.key, flag.value_type as "valueType",
        jsonb_path_query_array(flag.variations, '$[*].key') as variations, state.content,
        sum(coalesce(stored.configuration_bytes, 0)) over (order by flag.key) as bytes
      from ${flagsWithStates}
      where flag.project_id = ${projectId} and state.environment_id = ${environmentId}
        and flag.key in (select key from required)
    ) as measured`;
  if (rows.some(({ content }) => content === null)) return undefined;
  return rows.map(({ key, valueType, variations, content }) => ({
    ...(content as State),
    ...{ key, value_type: valueType },
    ...(variations === null ? {} : { variations: variations.map((each) => ({ key: each })) }),
  }));
}

type RequiredRow = {
  key: string;
  valueType: ValueType;
  variations: string[] | null;
  content: State | null;
};

export type FoundAudience = {
  key: string;
  match: Audience["match"];
  listAttribute: string | null;
  listId: string | null;
  updatedAt: Date;
};

/** Returns audiences of a project; undefined if their conditions are larger than `maxBytes` together. */
export async function findAudiences(
  sql: Sql,
  projectId: string,
  { keys, maxBytes }: { keys: readonly string[]; maxBytes: number },
): Promise<FoundAudience[] | undefined> {
  const rows = await sql<(Omit<FoundAudience, "match"> & { match: Audience["match"] | null })[]>`
    select key, case when bytes <= ${maxBytes} then match end as match,
      list_attribute as "listAttribute", list_id as "listId", updated_at as "updatedAt"
    from (
      select audience.*, sum(configuration_bytes - 8 * coalesce(list_count, 0))
        over (order by key) as bytes
      from audiences as audience
      where project_id = ${projectId} and key = any(${keys})
    ) as measured`;
  const found = rows.flatMap(({ match, ...audience }) => (match ? { ...audience, match } : []));
  return found.length === rows.length ? found : undefined;
}

/** Returns the key of the fingerprints of a project. Undefined without lists. */
export async function findFingerprintKey(sql: Sql, projectId: string): Promise<Buffer | undefined> {
  const [found] = await sql<{ key: Buffer }[]>`
    select key from fingerprint_keys where project_id = ${projectId}`;
  return found?.key;
}

/** Returns those of the fingerprints that each list has, sorted like a chunk, by the id of the list. */
export async function findListed(
  sql: Sql,
  listIds: readonly string[],
  fingerprints: readonly bigint[],
): Promise<Map<string, Buffer>> {
  const rows = await sql<{ listId: string; fingerprint: Buffer }[]>`
    select distinct list_id as "listId", int8send(fingerprint) as fingerprint
    from audience_members
    where list_id = any(${listIds}::uuid[])
      and fingerprint = any(${fingerprints.map(String)}::bigint[])`;
  return new Map(
    [...Map.groupBy(rows, ({ listId }) => listId)].map(([listId, found]) => [
      listId,
      Buffer.concat(found.map(({ fingerprint }) => fingerprint).sort(Buffer.compare)),
    ]),
  );
}
