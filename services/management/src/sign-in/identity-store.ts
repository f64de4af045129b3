import { fragment, type Transaction } from "@halyard/postgres";
import type { Admission, KnownUser } from "./identify.ts";
import type { ProviderIdentity } from "./provider-claims.ts";
import type { AdmissionSettings } from "./settings.ts";

/** The class of the advisory locks of accounts and addresses. */
const signInLock = 1_936_877_390;

/**
 * Ignores the case of ASCII letters only. Unicode maps some other letters to ASCII, which would give two mailboxes the
 * same address.
 */
const foldedEmail = (email: string) => fragment`lower(${email}::text collate "C")`;

/** Serializes the sign-ins of an account, and those with an address, until the transaction ends. */
export async function lockIdentity(
  tx: Transaction,
  { issuer, subject }: ProviderIdentity,
  email: string | undefined,
): Promise<void> {
  // The address comes second in every transaction, so that no two of them wait for each other.
  await tx`select pg_advisory_xact_lock(${signInLock}, hashtext(${JSON.stringify([issuer, subject])}))`;
  if (email !== undefined)
    await tx`select pg_advisory_xact_lock(${signInLock}, hashtext(${foldedEmail(email)}))`;
}

/** Returns the person of an account; null for a new account. */
export async function findPersonOf(
  tx: Transaction,
  { issuer, subject }: Pick<ProviderIdentity, "issuer" | "subject">,
): Promise<string | null> {
  const [found] = await tx<{ personId: string }[]>`
    select person_id as "personId" from identities
    where issuer = ${issuer} and subject = ${subject}`;
  return found?.personId ?? null;
}

/** Returns the persons of other accounts of the issuer with the same address. */
export async function findOtherPersons(
  tx: Transaction,
  { issuer, subject }: ProviderIdentity,
  email: string | undefined,
): Promise<string[]> {
  if (email === undefined) return [];
  const found = await tx<{ personId: string }[]>`
    select person_id as "personId" from identities
    where issuer = ${issuer} and subject <> ${subject}
      and lower(email collate "C") = ${foldedEmail(email)}`;
  return found.map(({ personId }) => personId);
}

/** Reads the users of a person, and those with an address. The lock delays their removal and renaming. */
export async function lockUsers(
  tx: Transaction,
  { personId, email }: { personId: string | null; email: string | undefined },
): Promise<KnownUser[]> {
  return tx<KnownUser[]>`
    select users.id, organization_id as "organizationId", email, person_id as "personId",
      coalesce(lower(email collate "C") = ${foldedEmail(email ?? "")}, false) as "hasAddress"
    from users
    where deleted_at is null and kind = 'person'
      and (person_id = ${personId} or lower(email collate "C") = ${foldedEmail(email ?? "")})
      and exists (select from organizations where id = organization_id)
    order by users.id
    for update of users`;
}

/**
 * Returns the organizations that admit an account, and locks them, because two sign-ins must not create two users with
 * one address.
 */
export async function lockAdmissions(
  tx: Transaction,
  { groups }: ProviderIdentity,
  {
    joined,
    groupsOrganizations,
  }: { joined: string | null; groupsOrganizations: AdmissionSettings["groupsOrganizations"] },
): Promise<Admission[]> {
  const mapsGroups =
    groupsOrganizations === "all"
      ? fragment`true`
      : fragment`organization_id = any(${groupsOrganizations as string[]}::uuid[])`;
  return tx<Admission[]>`
    select id as "organizationId", case when id = ${joined} then 'viewer' end as role
    from organizations
    where id = ${joined} or id in (
      select organization_id from grants
      where group_name = any(${groups as string[]}::text[]) and ${mapsGroups}
    )
    order by id
    for no key update`;
}

export async function insertPerson(tx: Transaction, id: string, now: Date): Promise<void> {
  await tx`insert into people (id, created_at) values (${id}, ${now})`;
}

/** Stores an account with its newest verified address. */
export async function upsertIdentity(
  tx: Transaction,
  { issuer, subject }: ProviderIdentity,
  { personId, email, now }: { personId: string; email: string | undefined; now: Date },
): Promise<void> {
  await tx`
    insert into identities (issuer, subject, person_id, email, created_at)
    values (${issuer}, ${subject}, ${personId}, ${email ?? ""}, ${now})
    on conflict (issuer, subject) do update
      set email = coalesce(${email ?? null}, identities.email)`;
}

export async function linkUser(tx: Transaction, userId: string, personId: string): Promise<void> {
  await tx`update users set person_id = ${personId} where id = ${userId}`;
}

/** Returns the users that are linked to a person, in organizations that exist. */
export async function findUsersOf(
  tx: Transaction,
  personId: string,
): Promise<Pick<KnownUser, "id" | "organizationId" | "email">[]> {
  return tx<Pick<KnownUser, "id" | "organizationId" | "email">[]>`
    select id, organization_id as "organizationId", email
    from users
    where person_id = ${personId} and deleted_at is null
      and exists (select from organizations where organizations.id = users.organization_id)
    order by organization_id`;
}
