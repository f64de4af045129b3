import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import type { Environment } from "./environment.ts";

/** Environments in PostgreSQL. */
const columns = fragment`
  environment.id, environment.project_id as "projectId", environment.name, environment.caution,
  environment.protection, environment.protected_at as "protectedAt",
  environment.version, environment.created_at as "createdAt",
  coalesce(environment.updated_at, environment.created_at) as "updatedAt"`;

/** The project that environments belong to. */
type ParentProject = { id: string; organizationId: string };

const parentColumns = fragment`id, organization_id as "organizationId"`;

export async function findParentProject(sql: Sql, id: string): Promise<ParentProject | undefined> {
  const [project] = await sql<ParentProject[]>`
    select ${parentColumns} from projects where id = ${id}`;
  return project;
}

/**
 * Reads and locks a project to change its environments. Transactions that create or delete a flag, or issue a key, hold
 * `for key share` on the same row. That lock conflicts with this one, so no flag or key is added or removed until this
 * transaction ends.
 */
export async function lockParentProject(
  tx: Transaction,
  id: string,
): Promise<ParentProject | undefined> {
  const [project] = await tx<ParentProject[]>`
    select ${parentColumns} from projects where id = ${id} for update`;
  return project;
}

export async function findEnvironment(
  sql: Sql | Transaction,
  address: { projectId: string; environmentId: string },
): Promise<Environment | undefined> {
  const [environment] = await sql<Environment[]>`
    select ${columns}
    from environments as environment
    where environment.id = ${address.environmentId}
      and environment.project_id = ${address.projectId}`;
  return environment;
}

export async function listEnvironments(
  sql: Sql | Transaction,
  projectId: string,
): Promise<Environment[]> {
  return sql<Environment[]>`
    select ${columns}
    from environments as environment
    where environment.project_id = ${projectId}
    order by environment.created_at, environment.id`;
}

export async function countEnvironments(tx: Transaction, projectId: string): Promise<number> {
  const [row] = await tx<[{ count: number }]>`
    select count(*)::integer as count from environments where project_id = ${projectId}`;
  return row.count;
}

/** Returns the environments of all projects of an organization. */
export async function listEnvironmentsOf(
  sql: Sql | Transaction,
  organizationId: string,
): Promise<Environment[]> {
  return sql<Environment[]>`
    select ${columns}
    from environments as environment
    join projects as project on project.id = environment.project_id
    where project.organization_id = ${organizationId}
    order by environment.created_at, environment.id`;
}

/**
 * Changes an environment. Returns false if the name is taken. The caller has locked the project, so no concurrent
 * request can take the name.
 */
export async function updateEnvironment(
  tx: Transaction,
  environment: Environment,
): Promise<boolean> {
  // Waits for changes of states in the environment, so that the next statement sees their history entries.
  await tx`select from environments where id = ${environment.id} for no key update`;
  const changed = await tx`
    update environments
    set name = ${environment.name}, caution = ${environment.caution},
      protection = ${environment.protection && json(environment.protection)},
      protected_at = ${environment.protectedAt},
      protected_after = case
        when ${environment.protectedAt}::timestamptz is null then null
        else coalesce(protected_after, ${lastSequenceIn(environment)}) end,
      version = ${environment.version}, updated_at = ${environment.updatedAt}
    where id = ${environment.id}
      and not exists (
        select from environments as other
        where other.project_id = ${environment.projectId} and other.name = ${environment.name}
          and other.id <> ${environment.id}
      )`;
  return changed.count === 1;
}

/** The sequence of the last history entry in an environment. Each flag has an index of its own entries. */
const lastSequenceIn = ({ id, projectId }: Environment) => fragment`(
  select coalesce(max(newest.sequence), 0)
  from flags as flag
  cross join lateral (
    select entry.sequence from history as entry
    where entry.flag_id = flag.id and entry.environment_id = ${id}
    order by entry.sequence desc
    limit 1
  ) as newest
  where flag.project_id = ${projectId})`;

/** Inserts environments of a project. Returns false if one of the names is taken. */
export async function insertEnvironments(
  tx: Transaction,
  environments: readonly Environment[],
): Promise<boolean> {
  const inserted = await tx`
    insert into environments (id, project_id, name, caution, created_at)
    select id, "projectId", name, caution, "createdAt"
    from jsonb_to_recordset(${json(environments)}) as environment (
      id uuid, "projectId" uuid, name text, caution boolean, "createdAt" timestamptz)
    on conflict on constraint environment_name_taken do nothing`;
  return inserted.count === environments.length;
}
