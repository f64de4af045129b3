import { type PeopleAddress, type PeopleValue, peopleKey } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";

/**
 * The newest value of each entry of the people bucket. A change replaces the value in its own transaction, with the next
 * version. The relay's leader sends the values that have no sequence.
 */
type Content<Value> = Value extends unknown
  ? Omit<Value, "version" | "committed_at" | "signature">
  : never;

type PeopleContent = Content<PeopleValue>;

/** A new value of an entry. After `removableAt` it has no effect, and leaves the table and the bucket. */
export type PeopleChange = {
  address: PeopleAddress;
  content: PeopleContent;
  removableAt?: Date;
};

/** The content of an entry that ends. */
export const ended = { deleted: true } as const;

/**
 * Writes new values, each address at most once. Skips the end of an entry that does not exist. Returns the versions in the
 * same order, and 0 for a skipped one.
 */
export async function putPeopleEntries(
  tx: Transaction,
  changes: readonly PeopleChange[],
): Promise<number[]> {
  const keys = changes.map(({ address }) => peopleKey(address));
  const written = await tx<{ key: string; version: number }[]>`
    insert into people_entries as entry (key, content, version, committed_at, removable_at)
    select change.key, change.content, 1, clock_timestamp(), change.removable_at
    from unnest(
      ${keys}::text[],
      ${changes.map(({ content }) => JSON.stringify(content))}::text[],
      ${changes.map(({ removableAt }) => removableAt?.toISOString() ?? null)}::timestamptz[]
    ) as change (key, content, removable_at)
    where change.content <> ${JSON.stringify(ended)}
      or exists (select from people_entries as known where known.key = change.key)
    -- Concurrent writes lock the rows in one order.
    order by change.key
    on conflict (key) do update
      set content = excluded.content, version = entry.version + 1,
        committed_at = excluded.committed_at, removable_at = excluded.removable_at, sequence = null
    returning key, version`;
  const versions = new Map(written.map(({ key, version }) => [key, version]));
  return keys.map((key) => versions.get(key) ?? 0);
}

export type StoredEntry = { key: string; content: string; version: number; committedAt: Date };

/** Returns values that were not sent yet. */
export function unsentEntries(sql: Sql, limit: number): Promise<StoredEntry[]> {
  return sql<StoredEntry[]>`
    select key, content, version, committed_at as "committedAt" from people_entries
    where sequence is null
    order by key
    limit ${limit}`;
}

/** Returns the values after a key. */
export function entriesAfter(sql: Sql, key: string, limit: number): Promise<StoredEntry[]> {
  return sql<StoredEntry[]>`
    select key, content, version, committed_at as "committedAt" from people_entries
    where key > ${key}
    order by key
    limit ${limit}`;
}

/** Records the sequences of sent values. A value that was replaced meanwhile stays unsent. */
export async function recordSequences(
  tx: Transaction,
  sent: readonly (StoredEntry & { sequence: number })[],
): Promise<void> {
  await tx`
    update people_entries as entry
    set sequence = sent.sequence
    from unnest(
      ${sent.map(({ key }) => key)}::text[],
      ${sent.map(({ version }) => version)}::bigint[],
      ${sent.map(({ sequence }) => sequence)}::bigint[]
    ) as sent (key, version, sequence)
    where entry.key = sent.key and entry.version = sent.version`;
}

/** Removes sent values after their `removableAt`. Returns their keys. */
export async function removeEntries(tx: Transaction, limit: number): Promise<string[]> {
  const removed = await tx<{ key: string }[]>`
    delete from people_entries
    where key in (
      select key from people_entries
      where removable_at < clock_timestamp() and sequence is not null
      order by removable_at
      limit ${limit}
      for update skip locked
    )
    returning key`;
  return removed.map(({ key }) => key);
}

/** Returns the payload of an entry, without its signature. */
export function payloadOf({ content, version, committedAt }: StoredEntry): string {
  const value = JSON.parse(content) as PeopleContent;
  return JSON.stringify({ ...value, version, committed_at: committedAt.toISOString() });
}
