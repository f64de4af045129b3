import { erasedEmail } from "@halyard/contracts";
import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import type { User, UserAddress } from "./user.ts";

/** Columns of users. The rows of deleted users stay, because keys, schedules and history refer to them. */
const columns = fragment`
  id, organization_id as "organizationId", kind, email, name, person_id as "personId",
  created_at as "createdAt"`;

/** Matches a user, except in a deleted organization, whose users are removed later. */
const isOf = ({ organizationId, userId }: UserAddress) => fragment`
  id = ${userId} and organization_id = ${organizationId}
  and exists (select from organizations where id = ${organizationId})`;

const isAt = (address: UserAddress) => fragment`
  ${isOf(address)} and deleted_at is null`;

export async function findUser(
  sql: Sql | Transaction,
  address: UserAddress,
): Promise<User | undefined> {
  const [user] = await sql<User[]>`
    select ${columns} from users where ${isAt(address)}`;
  return user;
}

/** Reads and locks a user. No key of the user can be issued until the transaction ends. */
export async function lockUser(tx: Transaction, address: UserAddress): Promise<User | undefined> {
  const [user] = await tx<User[]>`
    select ${columns} from users where ${isAt(address)} for update`;
  return user;
}

/** Reads and locks a deleted user. */
export async function lockDeletedUser(
  tx: Transaction,
  address: UserAddress,
): Promise<User | undefined> {
  const [user] = await tx<User[]>`
    select ${columns} from users
    where ${isOf(address)} and deleted_at is not null
    for update`;
  return user;
}

export async function listUsers(sql: Sql, organizationId: string): Promise<User[]> {
  return sql<User[]>`
    select ${columns} from users
    where organization_id = ${organizationId} and deleted_at is null
    order by created_at, id`;
}

/**
 * Returns whether a user of the organization has an e-mail address, ignoring case. The caller has locked the
 * organization, so no concurrent request can use the address. There is no unique index, because users of earlier
 * releases may share an address.
 */
export async function isEmailTaken(
  tx: Transaction,
  { organizationId, email }: Pick<User, "organizationId" | "email">,
): Promise<boolean> {
  const [row] = await tx<[{ taken: boolean }]>`
    select exists (
      select from users
      where organization_id = ${organizationId} and deleted_at is null
        and lower(email) = lower(${email})
    ) as taken`;
  return row.taken;
}

/** Reads and locks the user with an e-mail address, ignoring case. The caller has locked the organization. */
export async function findUserByEmail(
  tx: Transaction,
  { organizationId, email }: Pick<User, "organizationId" | "email">,
): Promise<User | undefined> {
  const [user] = await tx<User[]>`
    select ${columns} from users
    where organization_id = ${organizationId} and deleted_at is null
      and lower(email) = lower(${email})
    order by created_at, id
    limit 1
    for update`;
  return user;
}

export async function insertUser(tx: Transaction, user: User): Promise<void> {
  await tx`
    insert into users (id, organization_id, kind, email, name, created_at)
    values (${user.id}, ${user.organizationId}, ${user.kind}, ${user.email}, ${user.name},
      ${user.createdAt})`;
}

/** Writes a change to a locked user. */
export async function updateUser(tx: Transaction, { id, email, name }: User): Promise<void> {
  await tx`update users set email = ${email}, name = ${name} where id = ${id}`;
}

/** Deletes a locked user. */
export async function deleteUser(tx: Transaction, { id }: User, now: Date): Promise<void> {
  await tx`update users set name = null, deleted_at = ${now} where id = ${id}`;
}

/**
 * Replaces the e-mail address of a locked, deleted user by a pseudonym. Batches replace it in the audit log. They begin
 * after the id of the user. Ids begin with the time, so every entry that names the user has a higher id.
 */
export async function eraseUser(tx: Transaction, id: string): Promise<void> {
  await tx`update users set email = ${erasedEmail(id)}, erased_up_to = id where id = ${id}`;
}
