import { referredKeys } from "@halyard/evaluation";
import { json, type Sql, type Transaction } from "@halyard/postgres";
import { usesOf } from "../audiences/audience-store.ts";
import type { FlagEnvironment } from "../flags/flag.ts";
import { lockRows } from "../flags/flag-store.ts";
import { lockReferences } from "../flags/references.ts";
import { lockParentProject } from "../tenancy/environment-store.ts";
import { canonicalJson } from "./canonical-json.ts";
import {
  type Base,
  type DecidedChange,
  differencesOf,
  type StateChange,
} from "./change-request.ts";

/** The project of a request, with its environments. */
export type Place = { projectId: string; environments: readonly VersionedEnvironment[] };
type VersionedEnvironment = FlagEnvironment & { version: number };

/** The subject of a change. Changes have these members, among others. */
export type Subject = {
  kind: DecidedChange["kind"];
  flag_id?: string;
  environment_id?: string;
  audience?: string;
};

/** Reads what changes refer to, with its versions. */
export async function readBase(
  sql: Sql | Transaction,
  place: Place,
  changes: readonly DecidedChange[],
): Promise<Base> {
  const required = await readRequired(sql, place.projectId, changes);
  return readNamed(sql, place, [
    ...namesOf(place, changes),
    ...required.flatMap(({ flagId, environmentId }) => [
      `state ${flagId} ${environmentId}`,
      `variations ${flagId}`,
    ]),
    ...audiencesOf(changes, required).flatMap(namesOfAudience),
  ]);
}

/** The base of a request, and what its changes replace. */
type Based = { base: Base; changes: readonly Subject[] };

/**
 * Returns what has changed since requests were made, in words. It reads everything that a base names, and not what its
 * changes refer to through other flags: such a reference changes only with a state that the base names.
 */
export async function readDifferences(
  sql: Sql | Transaction,
  place: Place,
  requests: readonly Based[],
): Promise<string[][]> {
  const named = requests.map(({ base, changes }) => [
    ...new Set([...Object.keys(base), ...namesOf(place, changes)]),
  ]);
  const current = await readNamed(sql, place, named.flat());
  return requests.map(({ base }, index) => {
    const ofRequest = named[index]?.flatMap((name) => {
      const entry = current[name];
      return entry === undefined ? [] : [[name, entry] as const];
    });
    return differencesOf(base, Object.fromEntries(ofRequest ?? []));
  });
}

/** Returns the names in a base of what changes replace and affect, without what they refer to. */
function namesOf({ environments }: Place, changes: readonly Subject[]): string[] {
  const guarded = environments.filter(({ protection }) => protection !== null);
  const affected = environments.filter(({ id }) => isAffected(changes, id));
  return [
    ...changes.flatMap((change) => namesOfSubject(change, guarded)),
    ...affected.map(({ id }) => `protection ${id}`),
  ];
}

function namesOfSubject(
  { kind, flag_id, environment_id, audience }: Subject,
  guarded: readonly { id: string }[],
): string[] {
  const variations = `variations ${flag_id}`;
  switch (kind) {
    case "state":
      return [variations, `state ${flag_id} ${environment_id}`];
    case "flag_variations":
      // They also depend on every protected state of the flag.
      return [variations, ...guarded.map(({ id }) => `state ${flag_id} ${id}`)];
    case "flag_deletion":
      return [variations, `flag ${flag_id}`];
    case "audience":
    case "audience_list":
      return [...namesOfAudience(`${audience}`), `uses ${audience}`];
    case "protection":
      return [`environment ${environment_id}`];
  }
}

// Another audience can have the key after a deletion.
const namesOfAudience = (key: string): string[] => [`audience ${key}`, `audience-id ${key}`];

/** Reads the current versions by their names in bases. Those of something that was deleted are absent. */
async function readNamed(
  sql: Sql | Transaction,
  place: Place,
  names: readonly string[],
): Promise<Base> {
  const { projectId, environments } = place;
  const wanted = new Set(names);
  const idsOf = (...kinds: string[]) =>
    [...wanted].flatMap((name) => {
      const [kind = "", id = ""] = name.split(" ");
      return kinds.includes(kind) ? id : [];
    });
  const [flags, states, audiences, uses] = await Promise.all([
    readFlags(sql, projectId, idsOf("variations", "flag")),
    readStates(
      sql,
      [...wanted].filter((name) => name.startsWith("state ")),
    ),
    sql<{ id: string; key: string; version: number }[]>`
      select id, key, version from audiences
      where project_id = ${projectId} and key = any(${idsOf("audience")})`,
    usesOf(sql, { projectId, keys: idsOf("uses"), environmentId: null }),
  ]);
  const nameOf = (id: string) => environments.find((each) => each.id === id)?.name ?? id;
  const base: Record<string, Base[string]> = {};
  const put = (name: string, label: string, version: unknown) => {
    if (wanted.has(name)) base[name] = { label, version: String(version) };
  };
  for (const { id, key, version, variationsVersion } of flags) {
    put(`variations ${id}`, `${key}: the variations`, variationsVersion);
    put(`flag ${id}`, key, version);
  }
  for (const { flagId, key, environmentId, version } of states)
    put(`state ${flagId} ${environmentId}`, `${key} in ${nameOf(environmentId)}`, version);
  for (const { id, key, version } of audiences) {
    put(`audience ${key}`, `the audience ${key}`, version);
    put(`audience-id ${key}`, `the audience ${key}`, id);
  }
  for (const [key, used] of uses)
    put(
      `uses ${key}`,
      `the flags that use the audience ${key}`,
      used.map(({ flagId, environmentId }) => `${flagId} ${environmentId}`).sort(),
    );
  for (const { id, name, version, protection } of environments) {
    put(`protection ${id}`, `the protection of ${name}`, canonicalJson(protection));
    put(`environment ${id}`, name, version);
  }
  return base;
}

/** Returns the id in a base of what a change replaces, whose version is the one that the change is based on. */
export function baseIdOf(change: DecidedChange): string {
  switch (change.kind) {
    case "state":
      return `state ${change.flag_id} ${change.environment_id}`;
    case "flag_variations":
      return `variations ${change.flag_id}`;
    case "flag_deletion":
      return `flag ${change.flag_id}`;
    case "audience":
    case "audience_list":
      return `audience ${change.audience}`;
    case "protection":
      return `environment ${change.environment_id}`;
  }
}

/** Returns whether changes can affect an environment. Those of all environments can affect each one. */
const isAffected = (changes: readonly Subject[], environmentId: string): boolean =>
  changes.some(({ environment_id }) => (environment_id ?? environmentId) === environmentId);

const changedAudiences = (changes: readonly DecidedChange[]): string[] =>
  changes.flatMap((change) => ("audience" in change ? [change.audience] : []));

const stateChanges = (changes: readonly DecidedChange[]): StateChange[] =>
  changes.filter((change) => change.kind === "state");

function audiencesOf(
  changes: readonly DecidedChange[],
  required: readonly { audiences: readonly string[] }[],
): string[] {
  return [
    ...stateChanges(changes).flatMap(({ after }) => referredKeys(after).audiences),
    ...required.flatMap(({ audiences }) => audiences),
  ];
}

const flagIdsOf = (changes: readonly DecidedChange[]): string[] =>
  changes.flatMap((change) => ("flag_id" in change ? [change.flag_id] : []));

function readFlags(
  sql: Sql | Transaction,
  projectId: string,
  ids: readonly string[],
): Promise<{ id: string; key: string; version: number; variationsVersion: number }[]> {
  return sql`
    select id, key, version, coalesce(variations_version, 1) as "variationsVersion"
    from flags where project_id = ${projectId} and id = any(${ids as string[]}::uuid[])`;
}

type FlagVersion = { flagId: string; key: string; environmentId: string; version: number };

/** Reads states by their names in bases. */
function readStates(sql: Sql | Transaction, names: readonly string[]): Promise<FlagVersion[]> {
  const pairs = names.map((name) => {
    const [, flag_id, environment_id] = name.split(" ");
    return { flag_id, environment_id };
  });
  return sql`
    select state.flag_id as "flagId", flag.key, state.environment_id as "environmentId",
      state.version
    from flag_states as state
    join flags as flag on flag.id = state.flag_id
    join environments as environment on environment.id = state.environment_id
    where (state.flag_id, state.environment_id) in (
      select flag_id, environment_id
      from jsonb_to_recordset(${json(pairs)}) as pair (flag_id uuid, environment_id uuid)
    )`;
}

type Required = { flagId: string; environmentId: string; audiences: string[] };

/** Returns the states of the flags that changed states will require, directly or through others. */
async function readRequired(
  sql: Sql | Transaction,
  projectId: string,
  changes: readonly DecidedChange[],
): Promise<Required[]> {
  const seeds = stateChanges(changes).flatMap(({ environment_id, after }) =>
    referredKeys(after).flags.map((key) => ({ environment_id, key })),
  );
  if (seeds.length === 0) return [];
  return sql<Required[]>`
    with recursive required (environment_id, key) as (
      select environment_id, key collate "C"
      from jsonb_to_recordset(${json(seeds)}) as seed (environment_id uuid, key text)
      union
      select required.environment_id, reference.key
      from required
      join flags as flag on flag.project_id = ${projectId} and flag.key = required.key
      join flag_references as reference on reference.flag_id = flag.id
        and reference.environment_id = required.environment_id and reference.kind = 'flag'
    )
    select flag.id as "flagId", state.environment_id as "environmentId",
      array(
        select reference.key from flag_references as reference
        where reference.flag_id = flag.id and reference.environment_id = state.environment_id
          and reference.kind = 'audience'
      ) as audiences
    from required
    join flags as flag on flag.project_id = ${projectId} and flag.key = required.key
    join flag_states as state
      on state.flag_id = flag.id and state.environment_id = required.environment_id`;
}

/** Reads the environments of a project. */
export async function readPlace(sql: Sql | Transaction, projectId: string): Promise<Place> {
  const environments = await sql<VersionedEnvironment[]>`
    select id, name, version, protection, protected_at as "protectedAt"
    from environments where project_id = ${projectId} order by name`;
  return { projectId, environments };
}

/**
 * Locks everything that changes refer to until the transaction ends, and reads it. The order is that of other
 * transactions: the references of the project, its environments, flags in the order of their ids, audiences.
 */
export async function lockBase(
  tx: Transaction,
  projectId: string,
  changes: readonly DecidedChange[],
): Promise<{ place: Place; base: Base }> {
  const changesProtection = changes.some(({ kind }) => kind === "protection");
  // As for every change of an environment. To raise a weaker lock later would wait for transactions that wait for this one.
  if (changesProtection) await lockParentProject(tx, projectId);
  else await lockReferences(tx, projectId);
  await tx`select from environments where project_id = ${projectId} order by id for share`;
  const required = await readRequired(tx, projectId, changes);
  const flagIds = [...new Set([...flagIdsOf(changes), ...required.map(({ flagId }) => flagId)])];
  await lockRows(tx, { projectId, flagIds });
  const changed = changedAudiences(changes);
  await tx`
    select from audiences where project_id = ${projectId} and key = any(${changed})
    order by key for update`;
  await tx`
    select from audiences
    where project_id = ${projectId} and key = any(${audiencesOf(changes, required)})
    order by key for share`;
  // Before the lock of the organization's sum of bytes, for which holders of a share of these rows wait.
  if (changesProtection)
    await tx`select from environments where project_id = ${projectId} order by id for no key update`;
  const place = await readPlace(tx, projectId);
  return { place, base: await readBase(tx, place, changes) };
}
