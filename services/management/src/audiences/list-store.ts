import { randomBytes } from "node:crypto";
import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import type { Audience, StoredChunk } from "./audience.ts";
import type { Chunk } from "./fingerprint-chunks.ts";

/**
 * The entries of lists in PostgreSQL. Each list has its own id, so that an upload can write its entries beside the
 * current list, in many short transactions, and replace it at the end.
 */

/** Entries, and the bytes of their fingerprints in the same order. An object for each entry would take far more memory. */
export type Members = { texts: readonly string[]; fingerprints: Buffer };

/** The rows of entries: `fingerprint` and `member`. PostgreSQL has only signed integers, which have the same bits. */
const rowsOf = ({ texts, fingerprints }: Members) => fragment`(
  select (
      'x' || encode(
        substring(${fingerprints}::bytea from 8 * given.number::integer - 7 for 8), 'hex'
      )
    )::bit(64)::bigint as fingerprint,
    given.member
  from json_array_elements_text(${json(texts)}::json) with ordinality as given (member, number)
)`;

/**
 * Inserts entries. Returns the number of those that the list did not have. Their order is that of the index, which takes a
 * sixth less time of PostgreSQL for a million entries.
 */
export async function insertMembers(
  sql: Sql | Transaction,
  listId: string,
  members: Members,
): Promise<number> {
  const inserted = await sql`
    insert into audience_members (list_id, fingerprint, member)
    select ${listId}::uuid, entry.fingerprint, entry.member from ${rowsOf(members)} as entry
    order by entry.fingerprint, entry.member collate "C"
    on conflict do nothing`;
  return inserted.count;
}

/** Deletes entries. Returns the number of those that the list had. */
export async function deleteMembers(
  tx: Transaction,
  listId: string,
  members: Members,
): Promise<number> {
  const deleted = await tx`
    delete from audience_members as stored
    using ${rowsOf(members)} as entry
    where stored.list_id = ${listId} and stored.fingerprint = entry.fingerprint
      and stored.member = entry.member`;
  return deleted.count;
}

/** Returns which fingerprints of some entries a list has, as unsigned integers. */
export async function findFingerprints(
  tx: Transaction,
  listId: string,
  members: Members,
): Promise<Set<bigint>> {
  const rows = await tx<{ fingerprint: string }[]>`
    select distinct stored.fingerprint::text as fingerprint
    from ${rowsOf(members)} as asked
    join audience_members as stored
      on stored.list_id = ${listId} and stored.fingerprint = asked.fingerprint`;
  return new Set(rows.map(({ fingerprint }) => BigInt.asUintN(64, BigInt(fingerprint))));
}

/** Returns whether a list has one of the entries. */
export async function hasMember(sql: Sql, listId: string, members: Members): Promise<boolean> {
  const found = await sql`
    select from ${rowsOf(members)} as asked
    join audience_members as stored
      on stored.list_id = ${listId} and stored.fingerprint = asked.fingerprint
        and stored.member = asked.member`;
  return found.count > 0;
}

/** Records a list that no audience has yet. After this time, its entries are removed. */
export async function insertUnusedList(
  sql: Sql | Transaction,
  listId: string,
  keptForMs: number,
): Promise<void> {
  await sql`
    insert into unused_lists (list_id, removable_at)
    values (${listId}, clock_timestamp() + ${keptForMs} * interval '1 millisecond')`;
}

/** Takes a list for an audience. Returns false if its entries may have been removed. */
export async function takeUnusedList(tx: Transaction, listId: string): Promise<boolean> {
  const taken = await tx`
    delete from unused_lists where list_id = ${listId} and removable_at > clock_timestamp()`;
  return taken.count > 0;
}

/** Makes a list removable. */
export async function giveUpList(sql: Sql, listId: string): Promise<void> {
  await sql`update unused_lists set removable_at = clock_timestamp() where list_id = ${listId}`;
}

export async function hasRemovableLists(sql: Sql): Promise<boolean> {
  const found = await sql`
    select from unused_lists where removable_at <= clock_timestamp() limit 1`;
  return found.count > 0;
}

/** Removes up to `atMost` entries of the next removable list. Returns false if there is no such list. */
export async function removeUnusedEntries(tx: Transaction, atMost: number): Promise<boolean> {
  const [list] = await tx<{ id: string }[]>`
    select list_id as id from unused_lists
    where removable_at <= clock_timestamp()
    order by removable_at
    limit 1
    for update skip locked`;
  if (list === undefined) return false;
  const removed = await tx`
    delete from audience_members
    where ctid = any(array(
      select ctid from audience_members where list_id = ${list.id} limit ${atMost}
    ))`;
  if (removed.count < atMost) await tx`delete from unused_lists where list_id = ${list.id}`;
  return true;
}

/** Returns the key of the fingerprints of a project, and creates it if there is none. */
export async function fingerprintKeyOf(sql: Sql | Transaction, projectId: string): Promise<Buffer> {
  await sql`
    insert into fingerprint_keys (project_id, key) values (${projectId}, ${randomBytes(16)})
    on conflict do nothing`;
  const [row] = await sql<[{ key: Buffer }]>`
    select key from fingerprint_keys where project_id = ${projectId}`;
  return row.key;
}

/** Returns the number of entries of all lists of a project. */
export async function countProjectEntries(
  sql: Sql | Transaction,
  projectId: string,
): Promise<number> {
  const [row] = await sql<[{ count: number }]>`
    select coalesce(sum(list_count), 0)::integer as count
    from audiences where project_id = ${projectId}`;
  return row.count;
}

/** Returns the sizes of the chunks of an audience in bytes, in order. */
export async function readChunkSizes(tx: Transaction, audienceId: string): Promise<number[]> {
  const rows = await tx<{ size: number }[]>`
    select octet_length(bytes) as size from audience_chunks
    where audience_id = ${audienceId}
    order by position`;
  return rows.map(({ size }) => size);
}

/** Reads chunks of an audience by their positions. */
export async function readChunks(
  tx: Transaction,
  audienceId: string,
  positions: readonly number[],
): Promise<Map<number, Buffer>> {
  const rows = await tx<{ position: number; bytes: Buffer }[]>`
    select position, bytes from audience_chunks
    where audience_id = ${audienceId} and position = any(${positions as number[]}::integer[])`;
  return new Map(rows.map(({ position, bytes }) => [position, bytes]));
}

/** Removes all chunks of an audience. */
export async function deleteChunks(tx: Transaction, audienceId: string): Promise<void> {
  await tx`delete from audience_chunks where audience_id = ${audienceId}`;
}

/**
 * Stores chunks of an audience at their positions, and appends those that are not in `published` to the outbox. The
 * messages are made in the database, because those of a long list would take several times its memory here. They must
 * precede the entry of the audience, so this is called before the messages of the change are written. Returns the size
 * of the messages.
 */
export async function writeChunks(
  tx: Transaction,
  audience: Audience,
  { chunks, published }: { chunks: ReadonlyMap<number, Chunk>; published: ReadonlySet<string> },
): Promise<number> {
  let bytes = 0;
  const written = new Set(published);
  for (const [position, chunk] of chunks) {
    await tx`
      delete from audience_chunks where audience_id = ${audience.id} and position = ${position}`;
    await tx`
      insert into audience_chunks (audience_id, position, sha256, bytes, version, committed_at)
      values (${audience.id}, ${position}, ${chunk.sha256}, ${chunk.bytes}, ${audience.version},
        ${audience.updatedAt})`;
    if (!written.has(chunk.sha256)) bytes += await publishChunk(tx, audience, position);
    written.add(chunk.sha256);
  }
  return bytes;
}

/** Appends the message of `chunkEntry` to the outbox. */
async function publishChunk(
  tx: Transaction,
  audience: Audience,
  position: number,
): Promise<number> {
  const [row] = await tx<[{ bytes: number }]>`
    insert into outbox (stream, message_id, subject, payload)
    select 'snapshot', gen_random_uuid(),
      ${`${audience.organizationId}.chunk.${audience.id}.`} || sha256,
      json_build_object(
        'kind', 'chunk',
        'audience_id', audience_id,
        'sha256', sha256,
        'data', translate(encode(bytes, 'base64'), E'\n', ''),
        'version', version,
        'committed_at', ${audience.updatedAt.toISOString()}::text
      )::text
    from audience_chunks
    where audience_id = ${audience.id} and position = ${position}
    returning octet_length(payload) as bytes`;
  return row.bytes;
}

/** Returns the next chunk after a position, for a rebuild of the snapshot. */
export async function chunkAfter(
  sql: Sql,
  last: Pick<StoredChunk, "audienceId"> & { position: number },
): Promise<(StoredChunk & { position: number })[]> {
  return sql<(StoredChunk & { position: number })[]>`
    select audience.organization_id as "organizationId", chunk.audience_id as "audienceId",
      chunk.position, chunk.sha256, chunk.bytes, chunk.version, chunk.committed_at as "committedAt"
    from audience_chunks as chunk
    join audiences as audience on audience.id = chunk.audience_id
    where (chunk.audience_id, chunk.position) > (${last.audienceId}, ${last.position})
      and (select true from projects as project where project.id = audience.project_id)
    order by chunk.audience_id, chunk.position
    limit 1`;
}
