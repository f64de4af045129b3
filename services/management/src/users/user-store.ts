import type { Sql, Transaction } from "@halyard/postgres";
import type { User } from "./user.ts";

/** Users in PostgreSQL. They are never changed or deleted: what they did stays attributed to them. */
const columns = (sql: Sql | Transaction) => sql`
  id, organization_id as "organizationId", email, name, created_at as "createdAt"`;

export async function findUser(
  sql: Sql | Transaction,
  address: { organizationId: string; userId: string },
): Promise<User | undefined> {
  const [user] = await sql<User[]>`
    select ${columns(sql)} from users
    where id = ${address.userId} and organization_id = ${address.organizationId}`;
  return user;
}

export async function listUsers(sql: Sql, organizationId: string): Promise<User[]> {
  return sql<User[]>`
    select ${columns(sql)} from users
    where organization_id = ${organizationId}
    order by created_at, id`;
}

export async function insertUser(tx: Transaction, user: User): Promise<void> {
  await tx`
    insert into users (id, organization_id, email, name, created_at)
    values (${user.id}, ${user.organizationId}, ${user.email}, ${user.name}, ${user.createdAt})`;
}
