import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import type { LockedOrganization, Organization, Plans } from "./organization.ts";

/** Organizations in PostgreSQL. */
const columns = fragment`
  id, name, plan, limits, version, created_at as "createdAt", updated_at as "updatedAt"`;

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

/** Reads and locks an organization to delete it. No user or project can be added until the transaction ends. */
export async function lockToDelete(tx: Transaction, id: string): Promise<Organization | undefined> {
  const [organization] = await tx<Organization[]>`
    select ${columns} from organizations where id = ${id} for update`;
  return organization;
}

export async function insertOrganization(tx: Transaction, added: Organization): Promise<void> {
  await tx`
    insert into organizations (id, name, plan, limits, version, created_at, updated_at)
    values (${added.id}, ${added.name}, ${added.plan}, ${json(added.limits)}, ${added.version},
      ${added.createdAt}, ${added.updatedAt})`;
}

/**
 * Locks up to `limit` organizations whose recorded limits differ from those of their plan. Skips organizations that
 * another transaction has locked; a later pass finds them.
 */
export async function lockWithOtherLimits(
  tx: Transaction,
  plans: Plans,
  limit: number,
): Promise<LockedOrganization[]> {
  const organizations = await tx<Organization[]>`
    select ${columns} from organizations
    where plan = any(${Object.keys(plans)})
      and limits is distinct from ${json(plans)}::jsonb -> plan
    order by id
    limit ${limit}
    for no key update skip locked`;
  const counts = await tx<{ organizationId: string; projectCount: number }[]>`
    select organization_id as "organizationId", count(*)::integer as "projectCount"
    from projects
    where organization_id = any(${organizations.map(({ id }) => id)}::uuid[])
    group by organization_id`;
  const countOf = new Map(counts.map((row) => [row.organizationId, row.projectCount]));
  return organizations.map((organization) => ({
    organization,
    projectCount: countOf.get(organization.id) ?? 0,
  }));
}

/** Counts the organizations on each plan that is not in the list. */
export async function countOnOtherPlans(
  sql: Sql,
  plans: readonly string[],
): Promise<{ plan: string; organizations: number }[]> {
  return sql<{ plan: string; organizations: number }[]>`
    select plan, count(*)::integer as organizations
    from organizations
    where plan <> all(${[...plans]})
    group by plan`;
}

/** Writes a change to a locked organization. */
export async function updateOrganization(tx: Transaction, changed: Organization): Promise<void> {
  await tx`
    update organizations
    set name = ${changed.name}, plan = ${changed.plan}, limits = ${json(changed.limits)},
        version = ${changed.version}, updated_at = ${changed.updatedAt}
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
