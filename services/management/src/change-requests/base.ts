import { referredKeys } from "@halyard/evaluation";
import { json, type Sql, type Transaction } from "@halyard/postgres";
import { usesOf } from "../audiences/audience-store.ts";
import type { FlagEnvironment } from "../flags/flag.ts";
import { lockRows } from "../flags/flag-store.ts";
import { lockReferences } from "../flags/references.ts";
import { lockParentProject } from "../tenancy/environment-store.ts";
import { canonicalJson } from "./canonical-json.ts";
import type { Base, DecidedChange, StateChange } from "./change-request.ts";

/** The project of a request, with its environments. */
export type Place = { projectId: string; environments: readonly VersionedEnvironment[] };
type VersionedEnvironment = FlagEnvironment & { version: number };

/** Reads what changes refer to, with its versions. */
export async function readBase(
  sql: Sql | Transaction,
  place: Place,
  changes: readonly DecidedChange[],
): Promise<Base> {
  const { projectId, environments } = place;
  const [flags, targets, required] = await Promise.all([
    readFlags(sql, projectId, changes),
    readTargets(sql, changes),
    readRequired(sql, projectId, changes),
  ]);
  const changed = changedAudiences(changes);
  const keys = [...new Set([...changed, ...audiencesOf(changes, required)])];
  const [audiences, uses] = await Promise.all([
    sql<{ id: string; key: string; version: number }[]>`
      select id, key, version from audiences where project_id = ${projectId} and key = any(${keys})`,
    usesOf(sql, { projectId, keys: changed, environmentId: null }),
  ]);
  const nameOf = (id: string) => environments.find((each) => each.id === id)?.name ?? id;
  const base: Record<string, Base[string]> = {};
  const put = (id: string, label: string, version: unknown) => {
    base[id] = { label, version: String(version) };
  };
  for (const { id, key, version, variationsVersion } of flags) {
    put(`variations ${id}`, `${key}: the variations`, variationsVersion);
    if (changes.some((change) => change.kind === "flag_deletion" && change.flag_id === id))
      put(`flag ${id}`, key, version);
  }
  for (const { flagId, key, environmentId, version } of [...targets, ...required])
    put(`state ${flagId} ${environmentId}`, `${key} in ${nameOf(environmentId)}`, version);
  for (const { flagId, key, variationsVersion } of required)
    put(`variations ${flagId}`, `${key}: the variations`, variationsVersion);
  for (const { id, key, version } of audiences) {
    put(`audience ${key}`, `the audience ${key}`, version);
    // Another audience can have the key after a deletion.
    put(`audience-id ${key}`, `the audience ${key}`, id);
  }
  for (const [key, used] of uses)
    put(
      `uses ${key}`,
      `the flags that use the audience ${key}`,
      used.map(({ flagId, environmentId }) => `${flagId} ${environmentId}`).sort(),
    );
  for (const { id, name, protection } of environments)
    if (isAffected(changes, id))
      put(`protection ${id}`, `the protection of ${name}`, canonicalJson(protection));
  for (const { id, name, version } of environments)
    if (changes.some((change) => change.kind === "protection" && change.environment_id === id))
      put(`environment ${id}`, name, version);
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
const isAffected = (changes: readonly DecidedChange[], environmentId: string): boolean =>
  changes.some((change) =>
    "environment_id" in change ? change.environment_id === environmentId : true,
  );

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
  changes: readonly DecidedChange[],
): Promise<{ id: string; key: string; version: number; variationsVersion: number }[]> {
  return sql`
    select id, key, version, coalesce(variations_version, 1) as "variationsVersion"
    from flags where project_id = ${projectId} and id = any(${flagIdsOf(changes)}::uuid[])`;
}

type FlagVersion = { flagId: string; key: string; environmentId: string; version: number };

/** Returns the states that are changed. A change of variations also depends on every protected state of the flag. */
function readTargets(
  sql: Sql | Transaction,
  changes: readonly DecidedChange[],
): Promise<FlagVersion[]> {
  const pairs = stateChanges(changes).map(({ flag_id, environment_id }) => ({
    ...{ flag_id, environment_id },
  }));
  const varied = changes.flatMap((change) =>
    change.kind === "flag_variations" ? [change.flag_id] : [],
  );
  return sql`
    select state.flag_id as "flagId", flag.key, state.environment_id as "environmentId",
      state.version
    from flag_states as state
    join flags as flag on flag.id = state.flag_id
    join environments as environment on environment.id = state.environment_id
    where (state.flag_id, state.environment_id) in (
        select flag_id, environment_id
        from jsonb_to_recordset(${json(pairs)}) as pair (flag_id uuid, environment_id uuid)
      )
      or (state.flag_id = any(${varied}::uuid[]) and environment.protection is not null)`;
}

type Required = FlagVersion & { variationsVersion: number; audiences: string[] };

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
    select flag.id as "flagId", flag.key, state.environment_id as "environmentId", state.version,
      coalesce(flag.variations_version, 1) as "variationsVersion",
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
