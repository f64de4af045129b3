import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import type { EntryFlag, Flag } from "./flag.ts";
import { lockRows, variationColumns } from "./flag-store.ts";

/** A new environment in which some flags of the project have no stored state yet. */
export type EnvironmentFill = {
  environment: { id: string; projectId: string; createdAt: Date };
  organizationId: string;
  /** The user that the first history entries name as author. */
  createdBy: string;
  /** The fill has stored states of all flags up to this key. */
  afterKey: string;
};

/** The fields of a flag that its state and its snapshot entry in a new environment depend on. */
export type ProjectFlag = EntryFlag & Pick<Flag, "version" | "createdAt">;

/** Fills of new environments, in PostgreSQL. */
type FillRow = Omit<EnvironmentFill, "environment"> & {
  environmentId: string;
  projectId: string;
  createdAt: Date;
};

const fills = fragment`
  select environment.id as "environmentId", environment.project_id as "projectId",
    environment.created_at as "createdAt", project.organization_id as "organizationId",
    fill.created_by as "createdBy", fill.after_key as "afterKey"
  from environment_fills as fill
  join environments as environment on environment.id = fill.environment_id
  join projects as project on project.id = fill.project_id`;

export async function hasFills(sql: Sql): Promise<boolean> {
  const [row] = await sql<[{ any: boolean }]>`
    select exists (select from environment_fills) as any`;
  return row.any;
}

/** Locks the fill that has waited longest. Skips fills that another process has locked. */
export async function claimFill(tx: Transaction): Promise<EnvironmentFill | undefined> {
  const [row] = await tx<FillRow[]>`
    ${fills}
    order by fill.continued_at
    limit 1
    for update of fill skip locked`;
  return row && fromRow(row);
}

/** Returns the fills that have not reached a flag yet. Returns none if the flag is not in the project. */
export async function fillsWithout(
  tx: Transaction,
  scope: { projectId: string | null; flagId: string },
): Promise<EnvironmentFill[]> {
  const rows = await tx<FillRow[]>`
    ${fills}
    join flags as flag on flag.project_id = fill.project_id and flag.key > fill.after_key
    where flag.id = ${scope.flagId}
      and flag.project_id = coalesce(${scope.projectId}::uuid, flag.project_id)
    order by environment.id`;
  return rows.map(fromRow);
}

export async function insertFill(tx: Transaction, fill: EnvironmentFill): Promise<void> {
  await tx`
    insert into environment_fills (environment_id, project_id, created_by, after_key)
    values (${fill.environment.id}, ${fill.environment.projectId}, ${fill.createdBy},
      ${fill.afterKey})`;
}

export async function continueFill(tx: Transaction, fill: EnvironmentFill): Promise<void> {
  await tx`
    update environment_fills
    set after_key = ${fill.afterKey}, continued_at = clock_timestamp()
    where environment_id = ${fill.environment.id}`;
}

export async function deleteFill(tx: Transaction, fill: EnvironmentFill): Promise<void> {
  await tx`delete from environment_fills where environment_id = ${fill.environment.id}`;
}

/** Returns the next flags of a fill, in the order of their keys, which never change. */
export async function nextFlags(
  tx: Transaction,
  fill: EnvironmentFill,
  limit: number,
): Promise<{ id: string; key: string }[]> {
  return tx<{ id: string; key: string }[]>`
    select id, key from flags
    where project_id = ${fill.environment.projectId} and key > ${fill.afterKey}
    order by key
    limit ${limit}`;
}

/**
 * Locks flags, and returns those that have no state in the environment. A separate statement takes the locks first. The
 * second statement then sees the deletions and states that the first one waited for.
 */
export async function lockFlagsWithoutState(
  tx: Transaction,
  fill: EnvironmentFill,
  flagIds: readonly string[],
): Promise<ProjectFlag[]> {
  await lockRows(tx, { projectId: fill.environment.projectId, flagIds });
  const flags = await tx<Omit<ProjectFlag, "organizationId">[]>`
    select flag.id, flag.project_id as "projectId", flag.key, flag.version,
      flag.created_at as "createdAt", ${variationColumns}
    from flags as flag
    where flag.id = any(${flagIds}::uuid[])
      and not exists (
        select from flag_states as state
        where state.flag_id = flag.id and state.environment_id = ${fill.environment.id}
      )
    order by flag.id`;
  return flags.map((flag) => ({ ...flag, organizationId: fill.organizationId }));
}

function fromRow({ environmentId, projectId, createdAt, ...fill }: FillRow): EnvironmentFill {
  return { ...fill, environment: { id: environmentId, projectId, createdAt } };
}
