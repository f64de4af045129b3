import type { Sql, Transaction } from "@halyard/postgres";
import type { Project } from "./project.ts";

/** Projects in PostgreSQL. */
const columns = (sql: Sql | Transaction) => sql`
  id, organization_id as "organizationId", name, created_at as "createdAt"`;

export async function findProject(sql: Sql, id: string): Promise<Project | undefined> {
  const [project] = await sql<Project[]>`select ${columns(sql)} from projects where id = ${id}`;
  return project;
}

export async function findProjectOf(
  sql: Sql,
  address: { organizationId: string; projectId: string },
): Promise<Project | undefined> {
  const [project] = await sql<Project[]>`
    select ${columns(sql)} from projects
    where id = ${address.projectId} and organization_id = ${address.organizationId}`;
  return project;
}

/**
 * Reads a project to add an environment. Whoever creates or deletes a flag holds the weakest lock on
 * this row, which only the strongest one conflicts with: so no flag comes or goes meanwhile.
 */
export async function lockProject(tx: Transaction, id: string): Promise<Project | undefined> {
  const [project] = await tx<Project[]>`
    select ${columns(tx)} from projects where id = ${id} for update`;
  return project;
}

export async function listProjects(sql: Sql, organizationId: string): Promise<Project[]> {
  return sql<Project[]>`
    select ${columns(sql)} from projects
    where organization_id = ${organizationId}
    order by created_at, id`;
}

/** Writes a new project. False when its name is taken in the organization. */
export async function insertProject(tx: Transaction, project: Project): Promise<boolean> {
  const inserted = await tx`
    insert into projects (id, organization_id, name, created_at)
    values (${project.id}, ${project.organizationId}, ${project.name}, ${project.createdAt})
    on conflict on constraint project_name_taken do nothing`;
  return inserted.count === 1;
}
