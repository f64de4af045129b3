import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import type { LockedOrganization, Organization } from "./organization.ts";

/** Organizations in PostgreSQL. */
const columns = fragment`
  id, name, plan, (select plans.limits -> organizations.plan from plans) as limits,
  coalesce((select size.bytes from configuration_sizes as size
    where size.organization_id = organizations.id), 0) as "configurationBytes", version,
  created_at as "createdAt", updated_at as "updatedAt"`;

export async function findOrganization(
  sql: Sql | Transaction,
  id: string,
): Promise<Organization | undefined> {
  const [organization] = await sql<Organization[]>`
    select ${columns} from organizations where id = ${id}`;
  return organization;
}

export async function listOrganizations(sql: Sql): Promise<Organization[]> {
  return sql<Organization[]>`
    select ${columns} from organizations order by created_at, id`;
}

/**
 * Reads and locks an organization to change it or the number of its projects. A separate statement counts the projects,
 * because a statement that waits for the lock would count as of its start. The lock is the weaker one for updates, so
 * users can still be added.
 */
export async function lockOrganization(
  tx: Transaction,
  id: string,
): Promise<LockedOrganization | undefined> {
  const [organization] = await tx<Organization[]>`
    select ${columns} from organizations where id = ${id} for no key update`;
  if (organization === undefined) return undefined;
  const [{ projectCount }] = await tx<[{ projectCount: number }]>`
    select count(*)::integer as "projectCount" from projects where organization_id = ${id}`;
  return { organization, projectCount };
}

/**
 * Prevents changes of the roles and the users of an organization until the transaction ends. It is taken before the locks
 * of projects.
 */
export async function holdRoles(tx: Transaction, organizationId: string): Promise<void> {
  await tx`select from organizations where id = ${organizationId} for share`;
}

/** Reads and locks an organization to delete it. No user or project can be added until the transaction ends. */
export async function lockToDelete(tx: Transaction, id: string): Promise<Organization | undefined> {
  const [organization] = await tx<Organization[]>`
    select ${columns} from organizations where id = ${id} for update`;
  return organization;
}

export async function insertOrganization(
  tx: Transaction,
  added: Omit<Organization, "limits" | "configurationBytes">,
): Promise<void> {
  await tx`
    insert into organizations (id, name, plan, version, created_at, updated_at)
    values (${added.id}, ${added.name}, ${added.plan}, ${added.version}, ${added.createdAt},
      ${added.updatedAt})`;
}

/** Writes a change to a locked organization. */
export async function updateOrganization(tx: Transaction, changed: Organization): Promise<void> {
  await tx`
    update organizations
    set name = ${changed.name}, plan = ${changed.plan}, version = ${changed.version},
        updated_at = ${changed.updatedAt}
    where id = ${changed.id}`;
}

/** Locks the projects of an organization that is being deleted, so that no flag, key or environment can be added. */
export async function lockProjectsOf(
  tx: Transaction,
  organizationId: string,
): Promise<{ id: string; name: string }[]> {
  return tx<{ id: string; name: string }[]>`
    select id, name from projects
    where organization_id = ${organizationId}
    order by id
    for update`;
}
