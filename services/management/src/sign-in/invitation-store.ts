import type { Sql, Transaction } from "@halyard/postgres";
import type { User } from "../keys/user.ts";

/** Open invitations. The database contains only the digests of their codes. */
export type InvitationContent = {
  id: string;
  organization_id: string;
  user_id: string;
  created_at: string;
};

/** Returns the open invitations of an organization, newest first. Those of removed users are left out. */
export async function listInvitations(
  sql: Sql,
  organizationId: string,
  now: Date,
): Promise<{ id: string; user: User; createdAt: Date; expiresAt: Date }[]> {
  const rows = await sql<(User & { content: InvitationContent; expiresAt: Date })[]>`
    select code.content, code.expires_at as "expiresAt", invited.id,
      invited.organization_id as "organizationId", invited.kind, invited.email, invited.name,
      invited.person_id as "personId", invited.created_at as "createdAt"
    from one_time_codes as code
    join users as invited on invited.id = (code.content ->> 'user_id')::uuid
    where code.purpose = 'invitation' and code.organization_id = ${organizationId}
      and code.expires_at > ${now} and invited.deleted_at is null and invited.person_id is null
    order by code.expires_at desc, code.digest`;
  return rows.map(({ content, expiresAt, ...user }) => ({
    ...{ id: content.id, user, expiresAt },
    createdAt: new Date(content.created_at),
  }));
}

export async function deleteInvitation(
  tx: Transaction,
  { organizationId, invitationId }: { organizationId: string; invitationId: string },
): Promise<InvitationContent | undefined> {
  const [deleted] = await tx<{ content: InvitationContent }[]>`
    delete from one_time_codes
    where purpose = 'invitation' and organization_id = ${organizationId}
      and content ->> 'id' = ${invitationId.toLowerCase()}
    returning content`;
  return deleted?.content;
}

export async function deleteInvitationsOf(tx: Transaction, userId: string): Promise<void> {
  await tx`
    delete from one_time_codes
    where purpose = 'invitation' and content ->> 'user_id' = ${userId}
      and organization_id = (select organization_id from users where id = ${userId})`;
}

/** Returns the user of an open invitation, and the name of the organization, without using up the code. */
export async function findInvited(
  sql: Sql,
  { organization_id: organizationId, user_id: userId }: InvitationContent,
): Promise<
  { email: string; name: string | null; organization: { id: string; name: string } } | undefined
> {
  const [found] = await sql<{ email: string; name: string | null; organizationName: string }[]>`
    select invited.email, invited.name, organizations.name as "organizationName"
    from users as invited
    join organizations on organizations.id = invited.organization_id
    where invited.id = ${userId} and invited.deleted_at is null and invited.person_id is null`;
  if (found === undefined) return undefined;
  const { email, name, organizationName } = found;
  return { email, name, organization: { id: organizationId, name: organizationName } };
}
