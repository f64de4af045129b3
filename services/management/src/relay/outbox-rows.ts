import { flagEventsStream, type SnapshotRevision } from "@halyard/contracts";
import type { StreamPosition } from "@halyard/jetstream";
import type { Sql, Transaction } from "@halyard/postgres";
import { encodePublished } from "../outbox/published-hint.ts";
import { StreamMovedError } from "./failures.ts";

/** The relay's questions to the outbox, and what it records there. */
export type StreamName = "events" | "snapshot";

export type UnsentRow = { id: number; messageId: string; subject: string; payload: string };

export type Sent = { id: number; subject: string; sequence: number };

export type RecordedStream = {
  createdAt: string;
  lastSequence: number;
  baseSequence: number;
  /**
   * Up to this sequence of the snapshot, the signer named in `complete` signed the entries of API keys. A leader
   * of release 0.1.0 leaves it behind the last sequence.
   */
  signedSequence: number;
};

/** Bounds of a batch: rows that cost few round trips, and bytes that a broker takes in milliseconds. */
export type BatchBounds = { rows: number; bytes: number };

/**
 * The oldest unsent rows of a stream, as many as fit the bounds, and at least one. There is no
 * watermark: a row that commits late is found all the same.
 */
const oldestUnsent = (sql: Sql, stream: StreamName, bounds: BatchBounds) => sql`
  select measured.id, measured.message_id as "messageId", measured.subject, measured.payload
  from (
    select oldest.*,
           sum(octet_length(oldest.payload)) over (order by oldest.id)
             - octet_length(oldest.payload) as bytes_before
    from (
      select id, message_id, subject, payload
      from outbox
      where stream = ${stream} and sent_at is null
      order by id
      limit ${bounds.rows}
    ) as oldest
  ) as measured
  where measured.bytes_before < ${bounds.bytes}`;

/** Unsent events, oldest first. */
export async function unsentEvents(sql: Sql, bounds: BatchBounds): Promise<UnsentRow[]> {
  return sql<UnsentRow[]>`${oldestUnsent(sql, "events", bounds)} order by measured.id`;
}

/**
 * Unsent entries of the snapshot, oldest first, and of each entry among them only the newest value: the
 * snapshot keeps what is. A value that is newer still comes with a later batch, and so after this one.
 */
export async function unsentEntries(sql: Sql, bounds: BatchBounds): Promise<UnsentRow[]> {
  return sql<UnsentRow[]>`
    select newest.*
    from (
      select distinct on (batch.subject) batch.*
      from (${oldestUnsent(sql, "snapshot", bounds)}) as batch
      order by batch.subject, batch.id desc
    ) as newest
    order by newest.id`;
}

/** On this channel the leader tells the other replicas which rows their writers need not wait for. */
export const publishedChannel = "outbox_published";
/** A notification holds 8,000 bytes; an id and its comma take at most 17, and a revision at most 53. */
const idsPerNotification = 400;

/** Sends the ids of published rows, and the revision of the snapshot, to the other replicas. */
export async function notifyPublished(
  sql: Sql | Transaction,
  rowIds: readonly number[],
  revision: SnapshotRevision | undefined,
): Promise<void> {
  let from = 0;
  do {
    const hint = { rowIds: rowIds.slice(from, from + idsPerNotification), revision };
    await sql`select pg_notify(${publishedChannel}, ${encodePublished(hint)})`;
    from += idsPerNotification;
  } while (from < rowIds.length);
}

/**
 * Records what the broker acknowledged. An entry takes the older unsent values of the same entry with
 * it. Answers the ids of all rows that are settled by it. Rejects when the database has lost the sequence
 * that this leader recorded before: then it may have lost rows too, and the new record would hide that.
 */
export async function recordSent(
  tx: Transaction,
  stream: StreamName,
  sent: readonly Sent[],
  { recordedBefore, revision }: { recordedBefore: number; revision?: SnapshotRevision | undefined },
): Promise<number[]> {
  const lastSequence = Math.max(...sent.map((message) => message.sequence));
  const ids = sent.map((message) => message.id);
  const recorded = tx<{ id: number }[]>`
    update outbox as row
    set sent_at = clock_timestamp(), stream_sequence = sent.sequence
    from unnest(${ids}::bigint[], ${sent.map((message) => message.sequence)}::bigint[])
      as sent (id, sequence)
    where row.id = sent.id and row.sent_at is null
    returning row.id`;
  const overtaken = tx<{ id: number }[]>`
    update outbox as row
    set sent_at = clock_timestamp()
    from unnest(${ids}::bigint[], ${sent.map((message) => message.subject)}::text[])
      as sent (id, subject)
    where ${stream} = 'snapshot'
      and row.stream = 'snapshot'
      and row.sent_at is null
      and row.id < ${Math.max(...ids)}
      and row.subject = sent.subject
      and row.id < sent.id
    returning row.id`;
  const advanced = recordAdvanced(tx, stream, { lastSequence, recordedBefore });
  // Sent together, they cost one way to the database and back.
  const [ofSent, ofOvertaken] = await Promise.all([recorded, overtaken, advanced]);
  const settled = [...ofSent, ...ofOvertaken].map((row) => row.id);
  if (settled.length > 0) await notifyPublished(tx, settled, revision);
  return settled;
}

/**
 * Records the last published sequence. Rejects when the database has lost the sequence that this leader
 * recorded before.
 */
export async function recordAdvanced(
  tx: Transaction,
  stream: StreamName,
  { lastSequence, recordedBefore }: { lastSequence: number; recordedBefore: number },
): Promise<void> {
  const { count } = await tx`
    update relay_streams
    set last_sequence = greatest(last_sequence, ${lastSequence}),
        signed_sequence = greatest(last_sequence, ${lastSequence})
    where stream = ${stream} and last_sequence >= ${recordedBefore}`;
  if (count === 0)
    throw new StreamMovedError(`the database has lost what was recorded of its ${stream}`);
}

const uuidShape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Records events that were found in the log although their acknowledgements never came. */
export async function recordFound(
  tx: Transaction,
  found: ReadonlyMap<string, number>,
): Promise<number[]> {
  // Whatever else stands in the log, our own message ids are UUIDs.
  const ours = [...found].filter(([messageId]) => uuidShape.test(messageId));
  if (ours.length === 0) return [];
  const rows = await tx<{ id: number }[]>`
    update outbox as row
    set sent_at = clock_timestamp(), stream_sequence = found.sequence
    from unnest(
      ${ours.map(([messageId]) => messageId)}::uuid[],
      ${ours.map(([, sequence]) => sequence)}::bigint[]
    ) as found (message_id, sequence)
    where row.stream = 'events'
      and row.sent_at is null
      and row.message_id = found.message_id
    returning row.id`;
  return rows.map((row) => row.id);
}

/**
 * Settles unsent entries that a newer unsent value of the same entry has overtaken. A former leader
 * may have written the newer one and died before it could say so; then the older one, in a batch
 * without the newer, would be written after it.
 */
export async function settleOvertaken(tx: Transaction): Promise<void> {
  await tx`
    update outbox as row
    set sent_at = clock_timestamp()
    from (
      select subject, max(id) as newest_id
      from outbox
      where stream = 'snapshot' and sent_at is null
      group by subject
    ) as entry
    where row.stream = 'snapshot'
      and row.sent_at is null
      and row.subject = entry.subject
      and row.id < entry.newest_id`;
}

/** Returns whether one of these message ids belongs to no event of the outbox. */
export async function hasUnknownEvent(sql: Sql, messageIds: readonly string[]): Promise<boolean> {
  const ours = messageIds.filter((id) => uuidShape.test(id));
  const [row] = await sql<[{ isUnknown: boolean }]>`
    select exists (
      select from unnest(${ours}::uuid[]) as event (id)
      where not exists (
        select from outbox as row where row.stream = 'events' and row.message_id = event.id
      )
    ) as "isUnknown"`;
  return row.isUnknown;
}

export type SnapshotEntryHash = { key: string; sha256: string };

/**
 * Returns whether one of these entries has no row without a recorded sequence. Such rows are unsent, or
 * a newer value has overtaken them.
 */
export async function hasUnexplainedEntry(
  sql: Sql,
  entries: readonly SnapshotEntryHash[],
): Promise<boolean> {
  const [row] = await sql<[{ isUnexplained: boolean }]>`
    select exists (
      select key, sha256
      from unnest(
        ${entries.map(({ key }) => key)}::text[],
        ${entries.map(({ sha256 }) => sha256)}::text[]
      ) as entry (key, sha256)
      except
      select subject, encode(sha256(convert_to(payload, 'UTF8')), 'hex')
      from outbox
      where stream = 'snapshot'
        and (sent_at is null or (sent_at is not null and stream_sequence is null))
        and subject = any(${entries.map(({ key }) => key)}::text[])
    ) as "isUnexplained"`;
  return row.isUnexplained;
}

/**
 * Makes unsent again what the log lost: what stood behind a sequence, at most `limit` rows at a time.
 * Leaves out events that are older than the log keeps them: an old backup holds such rows, and
 * dispatchers no longer know that they delivered them. Answers how many it were.
 */
export async function forgetEventsAfter(
  tx: Transaction,
  sequence: number,
  limit: number,
): Promise<number> {
  const rows = await tx`
    update outbox
    set sent_at = null, stream_sequence = null
    where id in (
      select id from outbox
      where stream = 'events' and sent_at is not null and stream_sequence > ${sequence}
        and created_at > clock_timestamp() - ${flagEventsStream.maxAgeMs} * interval '1 millisecond'
      order by stream_sequence
      limit ${limit}
    )`;
  return rows.count;
}

/** How much is unsent, counted up to a bound, and since when the oldest of it waits. */
export async function readBacklog(
  sql: Sql,
  countUpTo: number,
): Promise<{ rows: number; oldestSeconds: number }> {
  const [backlog] = await sql<[{ rows: number; oldestSeconds: number }]>`
    select count(*)::integer as rows,
           coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float
             as "oldestSeconds"
    from (select created_at from outbox where sent_at is null limit ${countUpTo}) as unsent`;
  return backlog;
}

export async function recordedStream(
  sql: Sql,
  stream: StreamName,
): Promise<RecordedStream | undefined> {
  const [row] = await sql<RecordedStream[]>`
    select stream_created_at as "createdAt",
           last_sequence as "lastSequence",
           base_sequence as "baseSequence",
           coalesce(signed_sequence, 0) as "signedSequence"
    from relay_streams
    where stream = ${stream}`;
  return row;
}

export async function recordStream(
  tx: Transaction,
  stream: StreamName,
  now: RecordedStream,
): Promise<void> {
  await tx`
    insert into relay_streams (stream, stream_created_at, last_sequence, base_sequence,
      signed_sequence)
    values (${stream}, ${now.createdAt}, ${now.lastSequence}, ${now.baseSequence},
      ${now.signedSequence})
    on conflict (stream) do update
      set stream_created_at = excluded.stream_created_at,
          last_sequence = excluded.last_sequence,
          base_sequence = excluded.base_sequence,
          signed_sequence = excluded.signed_sequence`;
}

/**
 * The base sequence of a snapshot whose rebuild has begun. No stream reaches it, so that every release
 * rebuilds such a snapshot again.
 */
const baseWhileRebuilding = Number.MAX_SAFE_INTEGER;

/** Records that a rebuild of the snapshot has begun. Until it ends, every leader begins another one. */
export async function recordRebuilding(tx: Transaction, position: StreamPosition): Promise<void> {
  const { createdAt, lastSequence } = position;
  await recordStream(tx, "snapshot", {
    createdAt,
    lastSequence,
    baseSequence: baseWhileRebuilding,
    signedSequence: 0,
  });
}

export const isRebuilding = ({ baseSequence }: RecordedStream) =>
  baseSequence === baseWhileRebuilding;
