import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import type { Passkey } from "./passkeys.ts";

/** Passkeys in PostgreSQL. */
export type NamedPasskey = Passkey & { name: string; createdAt: Date; lastUsedAt: Date | null };

const columns = fragment`
  id, person_id as "personId", public_key as "publicKey", counter, transports, name,
  created_at as "createdAt", last_used_at as "lastUsedAt"`;

/** Returns the passkeys of a person in the order of their creation. */
export function listPasskeys(sql: Sql | Transaction, personId: string): Promise<NamedPasskey[]> {
  return sql<NamedPasskey[]>`
    select ${columns} from passkeys where person_id = ${personId} order by created_at, id`;
}

export async function findPasskey(sql: Sql, id: string): Promise<NamedPasskey | undefined> {
  const [passkey] = await sql<NamedPasskey[]>`select ${columns} from passkeys where id = ${id}`;
  return passkey;
}

/** Stores a passkey. Returns false for an id that is stored already. */
export async function insertPasskey(
  tx: Transaction,
  { lastUsedAt: _, ...passkey }: NamedPasskey,
): Promise<boolean> {
  const inserted = await tx`
    insert into passkeys (id, person_id, public_key, counter, transports, name, created_at)
    values (${passkey.id}, ${passkey.personId}, ${Buffer.from(passkey.publicKey)},
      ${passkey.counter}, ${passkey.transports as string[]}::text[], ${passkey.name},
      ${passkey.createdAt})
    on conflict do nothing`;
  return inserted.count > 0;
}

/**
 * Records the use of a passkey. Returns false for a counter that is not higher than the stored one, which means that the
 * passkey was copied or the response was used before. Authenticators without a counter always send 0.
 */
export async function recordUse(
  tx: Transaction,
  { id, counter, now }: { id: string; counter: number; now: Date },
): Promise<boolean> {
  const used = await tx`
    update passkeys set counter = ${counter}, last_used_at = ${now}
    where id = ${id} and (counter < ${counter} or (counter = 0 and ${counter} = 0))`;
  return used.count > 0;
}

export async function deletePasskey(
  tx: Transaction,
  { id, personId }: Pick<Passkey, "id" | "personId">,
): Promise<boolean> {
  const deleted = await tx`delete from passkeys where id = ${id} and person_id = ${personId}`;
  return deleted.count > 0;
}
