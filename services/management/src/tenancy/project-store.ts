import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import type { Project } from "./project.ts";

/** Projects in PostgreSQL. */
const columns = fragment`
  id, organization_id as "organizationId", name, version, created_at as "createdAt",
  coalesce(updated_at, created_at) as "updatedAt"`;

export async function findProjectOf(
  sql: Sql,
  address: { organizationId: string; projectId: string },
): Promise<Project | undefined> {
  const [project] = await sql<Project[]>`
    select ${columns} from projects
    where id = ${address.projectId} and organization_id = ${address.organizationId}`;
  return project;
}

/** Reads and locks a project. No flag or key of the project can be added or removed until the transaction ends. */
export async function lockProject(tx: Transaction, id: string): Promise<Project | undefined> {
  const [project] = await tx<Project[]>`
    select ${columns} from projects where id = ${id} for update`;
  return project;
}

export async function listProjects(sql: Sql, organizationId: string): Promise<Project[]> {
  return sql<Project[]>`
    select ${columns} from projects
    where organization_id = ${organizationId}
    order by created_at, id`;
}

/**
 * Renames a project. Returns false if the name is taken. The caller has locked the organization, so no concurrent
 * request can take the name.
 */
export async function updateProjectName(tx: Transaction, project: Project): Promise<boolean> {
  const renamed = await tx`
    update projects
    set name = ${project.name}, version = ${project.version}, updated_at = ${project.updatedAt}
    where id = ${project.id}
      and not exists (
        select from projects as other
        where other.organization_id = ${project.organizationId} and other.name = ${project.name}
      )`;
  return renamed.count === 1;
}

export async function listProjectIds(tx: Transaction, organizationId: string): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`
    select id from projects where organization_id = ${organizationId} order by id`;
  return rows.map(({ id }) => id);
}

/** Inserts a project. Returns false if its name is taken in the organization. */
export async function insertProject(tx: Transaction, project: Project): Promise<boolean> {
  const inserted = await tx`
    insert into projects (id, organization_id, name, created_at)
    values (${project.id}, ${project.organizationId}, ${project.name}, ${project.createdAt})
    on conflict on constraint project_name_taken do nothing`;
  return inserted.count === 1;
}
