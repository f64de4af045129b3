import { peopleKey, type Role } from "@halyard/contracts";
import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import type { Page } from "../access/answer-all.ts";
import type { Grant, NewGrant, OwnerGrant } from "./grants.ts";

/** Grants in PostgreSQL. The lock of the organization serializes their changes. */
type Row = Omit<Grant, "subject"> & { userId: string | null; group: string | null };

const columns = fragment`
  id, organization_id as "organizationId", user_id as "userId", group_name as "group", role,
  project_id as "projectId", environment_ids as "environmentIds", created_at as "createdAt"`;

/** Selects grants that still count: row-level security hides deleted projects. */
const isOfExisting = fragment`
  (project_id is null or exists (select from projects where projects.id = grants.project_id))`;

function grantOf({ userId, group, ...row }: Row): Grant {
  return { ...row, subject: userId === null ? { group: group ?? "" } : { userId } };
}

/** Returns a page of the grants of an organization, in the order of their creation. */
export async function listGrants(
  sql: Sql,
  organizationId: string,
  { after, limit }: { after: Grant | undefined; limit: number },
): Promise<Page<Grant>> {
  const ofPage = after
    ? fragment`and (created_at, id) > (${after.createdAt}, ${after.id})`
    : fragment``;
  const rows = await sql<Row[]>`
    select ${columns} from grants
    where organization_id = ${organizationId} and ${isOfExisting} ${ofPage}
    order by created_at, id
    limit ${limit + 1}`;
  return { items: rows.slice(0, limit).map(grantOf), more: rows.length > limit };
}

export async function findGrant(
  tx: Transaction,
  { organizationId, grantId }: { organizationId: string; grantId: string },
): Promise<Grant | undefined> {
  const [row] = await tx<Row[]>`
    select ${columns} from grants
    where id = ${grantId} and organization_id = ${organizationId} and ${isOfExisting}`;
  return row && grantOf(row);
}

/** Returns the grants of a user, or of all groups of an organization, in the order of their creation. */
export async function readGrantsBeside(
  tx: Sql | Transaction,
  { organizationId, subject }: Pick<NewGrant, "organizationId" | "subject">,
): Promise<Grant[]> {
  const isBeside =
    "userId" in subject ? fragment`user_id = ${subject.userId}` : fragment`user_id is null`;
  const rows = await tx<Row[]>`
    select ${columns} from grants
    where organization_id = ${organizationId} and ${isBeside} and ${isOfExisting}
    order by created_at, id`;
  return rows.map(grantOf);
}

/** Returns the grants of all groups of an organization. */
export async function readGroupGrants(
  tx: Transaction,
  organizationId: string,
): Promise<(Pick<Grant, "role" | "projectId" | "environmentIds"> & { group: string })[]> {
  return tx<(Row & { group: string })[]>`
    select ${columns} from grants
    where organization_id = ${organizationId} and user_id is null and ${isOfExisting}
    order by created_at, id`;
}

/**
 * Returns the grants that count for a session: by its user and by its groups. A removed user has none. Groups count while
 * the organization maps them, which its published entry says: settings may have changed since the grants were given.
 */
export async function readHeldGrants(
  tx: Sql | Transaction,
  organizationId: string,
  { userId, groups }: { userId: string; groups: readonly string[] },
): Promise<Grant[]> {
  const rows = await tx<Row[]>`
    select ${columns} from grants
    where organization_id = ${organizationId}
      and (user_id = ${userId} or group_name = any(${groups as string[]}::text[]) and exists (
        select from people_entries as entry
        where entry.key = ${peopleKey({ kind: "groups", organizationId })}
          and jsonb_array_length(entry.content::jsonb -> 'grants') > 0
      ))
      and exists (select from users where users.id = ${userId} and users.deleted_at is null)`;
  return rows.map(grantOf);
}

/** Returns the direct grants of the role owner to users with a person. */
export async function readOwners(tx: Transaction, organizationId: string): Promise<OwnerGrant[]> {
  const role: Role = "owner";
  return tx<OwnerGrant[]>`
    select owned.id as "grantId", owned.user_id as "userId"
    from grants as owned
    join users as member on member.id = owned.user_id
    where owned.organization_id = ${organizationId} and owned.role = ${role}
      and member.person_id is not null and member.deleted_at is null`;
}

/** Inserts a grant. From now on, roles bound the keys of its user. */
export async function insertGrant(tx: Transaction, grant: Grant): Promise<void> {
  const { subject } = grant;
  const userId = "userId" in subject ? subject.userId : null;
  const group = "group" in subject ? subject.group : null;
  await tx`
    insert into grants (id, organization_id, user_id, group_name, role, project_id,
      environment_ids, created_at)
    values (${grant.id}, ${grant.organizationId}, ${userId}, ${group}, ${grant.role},
      ${grant.projectId}, ${grant.environmentIds as string[] | null}, ${grant.createdAt})`;
  if (userId !== null) await tx`update users set governed = true where id = ${userId}`;
}

export async function deleteGrant(tx: Transaction, { id }: Grant): Promise<void> {
  await tx`delete from grants where id = ${id}`;
}

/** Returns the number of grants of all users with an e-mail address, ignoring case. */
export async function countGrantsOfEmail(sql: Sql, email: string): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select count(*)::integer as count
    from grants
    join users on users.id = grants.user_id
    where lower(users.email) = lower(${email}) and users.deleted_at is null`;
  return row.count;
}

/** Returns the users with an e-mail address who have a role or a person. */
export async function findUsersWithAccess(
  tx: Transaction,
  email: string,
): Promise<{ organizationId: string; userId: string }[]> {
  return tx<{ organizationId: string; userId: string }[]>`
    select organization_id as "organizationId", id as "userId"
    from users
    where lower(email) = lower(${email}) and deleted_at is null
      and (person_id is not null or exists (select from grants where grants.user_id = users.id))
    order by organization_id, id`;
}

/** Deletes all grants of a user. */
export async function deleteGrantsOf(tx: Transaction, userId: string): Promise<void> {
  await tx`delete from grants where user_id = ${userId}`;
}

/**
 * Returns whether a project has all these environments, and prevents the deletion of the project and of its environments
 * until the transaction ends.
 */
export async function holdProject(
  tx: Transaction,
  {
    organizationId,
    projectId,
    environmentIds,
  }: Pick<NewGrant, "organizationId" | "projectId" | "environmentIds">,
): Promise<boolean> {
  const held = await tx`
    select from projects
    where id = ${projectId} and organization_id = ${organizationId}
    for key share`;
  if (held.count === 0 || environmentIds === null) return held.count > 0;
  const found = await tx`
    select from environments
    where project_id = ${projectId} and id = any(${environmentIds as string[]}::uuid[])`;
  return found.count === environmentIds.length;
}
