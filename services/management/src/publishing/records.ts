import { flagEventsStream, type SnapshotRevision } from "@halyard/contracts";
import type { StreamPosition } from "@halyard/jetstream";
import type { Sql, Transaction } from "@halyard/postgres";
import { notifyPublished } from "../outbox/notifications.ts";
import type { StreamName } from "../outbox/unsent-rows.ts";
import { StreamMovedError } from "./broker.ts";
import { leaseMs } from "./lease.ts";

/** A row that needs no publication any more. `sequence` is null if a newer value of its entry was published. */
export type SettledRow = { id: number; sequence: number | null };

type RecordedStream = {
  createdAt: string;
  lastSequence: number;
  baseSequence: number;
};

/**
 * Records the rows of an acknowledged batch, and notifies the other replicas. Rejects if the database has lost a
 * sequence that this leader recorded earlier. The database may then have lost rows too, and a new record would hide
 * that.
 */
export async function recordSent(
  tx: Transaction,
  stream: StreamName,
  rows: readonly SettledRow[],
  {
    revision,
    ...sequences
  }: {
    lastSequence: number;
    recordedBefore: number;
    revision: SnapshotRevision | undefined;
  },
): Promise<void> {
  // The statements are sent together, in one round trip.
  await Promise.all([
    settle(tx, rows),
    recordAdvanced(tx, stream, sequences),
    notifyPublished(tx, revision === undefined ? [] : rows.map(({ id }) => id), revision),
  ]);
}

/**
 * Settles rows by their ids. Chunks of lists leave the outbox, which keeps other rows for days, because they are large.
 * Without the condition on `any`, a plan could read all rows. With `sent_at is null` in
 * addition, a plan could compare each unsent row with each id.
 */
export async function settle(tx: Transaction, rows: readonly SettledRow[]): Promise<void> {
  if (rows.length === 0) return;
  const ids = rows.map(({ id }) => id);
  await tx`
    update outbox as row
    set sent_at = clock_timestamp(), stream_sequence = settled.sequence,
      payload = case
        when row.stream = 'snapshot' and not row.tombstone
          and split_part(row.subject, '.', 2) = 'chunk' then ''
        else row.payload
      end
    from unnest(${ids}::bigint[], ${rows.map(({ sequence }) => sequence)}::bigint[])
      as settled (id, sequence)
    where row.id = any(${ids}::bigint[]) and row.id = settled.id`;
}

/**
 * Records the last published sequence. Rejects if the database has lost a sequence that this leader recorded earlier.
 */
export async function recordAdvanced(
  tx: Transaction,
  stream: RecordedName,
  { lastSequence, recordedBefore }: { lastSequence: number; recordedBefore: number },
): Promise<void> {
  const { count } = await tx`
    update relay_streams
    set last_sequence = greatest(last_sequence, ${lastSequence})
    where stream = ${stream} and last_sequence >= ${recordedBefore}`;
  if (count === 0)
    throw new StreamMovedError(`the database has lost the recorded position of ${stream}`);
}

const uuidShape = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** Other clients may write to the log. The message ids of management are UUIDs. */
const ofManagement = (messageIds: Iterable<string>) =>
  [...messageIds].filter((id) => uuidShape.test(id));

const eventRows = (sql: Pick<Sql, "unprepared">, messageIds: readonly string[]) =>
  sql.unprepared<{ id: number; messageId: string; isSent: boolean }[]>(
    `select id, message_id as "messageId", sent_at is not null as "isSent"
    from outbox
    where stream = 'events' and message_id = any($1::uuid[])`,
    [messageIds],
  );

/** Records events that are in the event log although their acknowledgements were lost. */
export async function recordFound(
  tx: Transaction,
  found: ReadonlyMap<string, number>,
): Promise<void> {
  const rows = await eventRows(tx, ofManagement(found.keys()));
  const unsent = rows.filter(({ isSent }) => !isSent);
  await settle(
    tx,
    unsent.map(({ id, messageId }) => ({ id, sequence: found.get(messageId) ?? null })),
  );
}

/** Returns the message ids that belong to no event of the outbox. */
export async function unknownEvents(
  sql: Sql,
  messageIds: Iterable<string>,
): Promise<ReadonlySet<string>> {
  const ours = ofManagement(messageIds);
  const known = new Set((await eventRows(sql, ours)).map(({ messageId }) => messageId));
  return new Set(ours.filter((id) => !known.has(id)));
}

/**
 * An entry's row without a recorded sequence: it is unsent, or it was superseded by a newer value. A superseded chunk has
 * an empty payload.
 */
export type UnrecordedRow = { id: number; key: string; sha256: string; isSent: boolean };

/** Returns the rows of entries without a recorded sequence, in order. */
export function unrecordedRows(sql: Sql, keys: readonly string[]): Promise<UnrecordedRow[]> {
  return sql.unprepared(
    `select id, subject as key, encode(sha256(convert_to(payload, 'UTF8')), 'hex') as sha256,
      sent_at is not null as "isSent"
    from outbox
    where stream = 'snapshot' and stream_sequence is null and subject = any($1::text[])
    order by id`,
    [keys],
  );
}

/**
 * Marks events after a sequence as unsent, because the event log lost them, up to `limit` rows. Skips events that are
 * older than the retention of the log. An old backup contains such rows, and dispatchers no longer know that they
 * delivered them. Returns the number of rows.
 */
export async function markUnsentAfter(
  tx: Transaction,
  sequence: number,
  limit: number,
): Promise<number> {
  const rows = await tx`
    update outbox
    set sent_at = null, stream_sequence = null
    where id = any(array(
      select id from outbox
      where stream = 'events' and sent_at is not null and stream_sequence > ${sequence}
        and created_at > clock_timestamp() - ${flagEventsStream.maxAgeMs} * interval '1 millisecond'
      order by stream_sequence
      limit ${limit}
    ))`;
  return rows.count;
}

/** The streams whose positions are recorded. */
type RecordedName = StreamName | "people";

export async function recordedStream(
  sql: Sql,
  stream: RecordedName,
): Promise<RecordedStream | undefined> {
  const [row] = await sql<RecordedStream[]>`
    select stream_created_at as "createdAt",
           last_sequence as "lastSequence",
           base_sequence as "baseSequence"
    from relay_streams
    where stream = ${stream}`;
  return row;
}

export async function recordStream(
  tx: Transaction,
  stream: RecordedName,
  now: RecordedStream,
): Promise<void> {
  await tx`
    insert into relay_streams (stream, stream_created_at, last_sequence, base_sequence)
    values (${stream}, ${now.createdAt}, ${now.lastSequence}, ${now.baseSequence})
    on conflict (stream) do update
      set stream_created_at = excluded.stream_created_at,
          last_sequence = excluded.last_sequence,
          base_sequence = excluded.base_sequence`;
}

/**
 * Base sequence of a snapshot whose rebuild has begun. No stream reaches it, so every leader rebuilds such a snapshot
 * again.
 */
const baseWhileRebuilding = Number.MAX_SAFE_INTEGER;

/** Records that a rebuild of a bucket has begun. Until it ends, every new leader starts another one. */
export async function recordRebuilding(
  tx: Transaction,
  position: StreamPosition,
  bucket: "snapshot" | "people" = "snapshot",
): Promise<void> {
  const { createdAt, lastSequence } = position;
  await recordStream(tx, bucket, {
    createdAt,
    lastSequence,
    baseSequence: baseWhileRebuilding,
  });
}

export const isRebuilding = ({ baseSequence }: RecordedStream) =>
  baseSequence === baseWhileRebuilding;

/**
 * Name of the row that confirms that the database and the streams agree. The leader renews it every second, and it
 * expires like a lease. In a restored database it has expired. So no message of the streams takes effect there before a
 * leader has compared the two.
 */
const confirmation = "streams_confirmed";
/** Name of the row with the creation time of the last discarded queue of due changes. */
const discardedQueue = "schedule_discarded";

/** The last sequences that this leader has recorded, by stream. */
type RecordedSequences = Partial<Record<StreamName, number>>;

/** Confirms the streams. Throws if the database has lost a sequence that this leader recorded. */
export async function confirmStreams(tx: Transaction, recorded: RecordedSequences): Promise<void> {
  const rows = await tx<{ stream: StreamName; lastSequence: number }[]>`
    select stream, last_sequence as "lastSequence"
    from relay_streams
    where stream in ('events', 'snapshot')`;
  for (const { stream, lastSequence } of rows)
    if (lastSequence < (recorded[stream] ?? 0))
      throw new StreamMovedError(`the database has lost the recorded position of ${stream}`);
  await tx`
    insert into leases (name, holder, expires_at)
    values (${confirmation}, gen_random_uuid(),
      clock_timestamp() + ${leaseMs} * interval '1 millisecond')
    on conflict (name) do update set expires_at = excluded.expires_at`;
}

export async function recordDiscardedQueue(tx: Transaction, createdAt: string): Promise<void> {
  await tx`
    insert into relay_streams (stream, stream_created_at, last_sequence)
    values (${discardedQueue}, ${createdAt}, 0)
    on conflict (stream) do update set stream_created_at = excluded.stream_created_at`;
}

/** Returns whether messages of the queue with this creation time may take effect. */
export async function queueStatus(
  sql: Sql,
  createdAt: string,
): Promise<"current" | "unconfirmed" | "discarded"> {
  const [row] = await sql<[{ isConfirmed: boolean; isDiscarded: boolean }]>`
    select
      exists (
        select from leases where name = ${confirmation} and expires_at > clock_timestamp()
      ) as "isConfirmed",
      exists (
        select from relay_streams
        where stream = ${discardedQueue} and stream_created_at = ${createdAt}
      ) as "isDiscarded"`;
  if (row.isDiscarded) return "discarded";
  return row.isConfirmed ? "current" : "unconfirmed";
}
