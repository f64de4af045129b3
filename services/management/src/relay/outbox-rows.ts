import type { Sql, Transaction } from "@halyard/postgres";

/** The relay's questions to the outbox, and what it records there. */
export type StreamName = "events" | "snapshot";

export type UnsentRow = { id: number; messageId: string; subject: string; payload: string };

export type Sent = { id: number; subject: string; sequence: number };

export type RecordedStream = { createdAt: string; lastSequence: number; baseSequence: number };

/** Unsent events, oldest first. There is no watermark: a row that commits late is found all the same. */
export async function unsentEvents(sql: Sql, limit: number): Promise<UnsentRow[]> {
  return sql<UnsentRow[]>`
    select id, message_id as "messageId", subject, payload
    from outbox
    where stream = 'events' and sent_at is null
    order by id
    limit ${limit}`;
}

/**
 * Unsent entries of the snapshot, oldest first, and of each entry among them only the newest value: the
 * snapshot keeps what is. A value that is newer still comes with a later batch, and so after this one.
 */
export async function unsentEntries(sql: Sql, limit: number): Promise<UnsentRow[]> {
  return sql<UnsentRow[]>`
    select newest.*
    from (
      select distinct on (oldest.subject) oldest.*
      from (
        select id, message_id as "messageId", subject, payload
        from outbox
        where stream = 'snapshot' and sent_at is null
        order by id
        limit ${limit}
      ) as oldest
      order by oldest.subject, oldest.id desc
    ) as newest
    order by newest.id`;
}

/** On this channel the leader tells the other replicas which rows their writers need not wait for. */
export const publishedChannel = "outbox_published";
/** A notification holds 8,000 bytes; an id and its comma take at most 17. */
const idsPerNotification = 400;

/**
 * Records what the broker acknowledged. An entry takes the older unsent values of the same entry with
 * it. Answers the ids of all rows that are settled by it.
 */
export async function recordSent(
  tx: Transaction,
  stream: StreamName,
  sent: readonly Sent[],
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
  const settled = (await Promise.all([recorded, overtaken])).flat().map((row) => row.id);
  for (let from = 0; from < settled.length; from += idsPerNotification)
    await tx`
      select pg_notify(${publishedChannel}, ${settled.slice(from, from + idsPerNotification).join(",")})`;
  await tx`
    update relay_streams
    set last_sequence = greatest(last_sequence, ${lastSequence})
    where stream = ${stream}`;
  return settled;
}

/** Records events that were found in the log although their acknowledgements never came. */
export async function recordFound(
  tx: Transaction,
  found: ReadonlyMap<string, number>,
): Promise<number[]> {
  if (found.size === 0) return [];
  const rows = await tx<{ id: number }[]>`
    update outbox as row
    set sent_at = clock_timestamp(), stream_sequence = found.sequence
    from unnest(${[...found.keys()]}::text[], ${[...found.values()]}::bigint[])
      as found (message_id, sequence)
    where row.stream = 'events'
      and row.sent_at is null
      and row.message_id::text = found.message_id
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

/** Makes unsent again what the log lost: everything that stood behind a sequence. */
export async function forgetEventsAfter(tx: Transaction, sequence: number): Promise<number> {
  const rows = await tx`
    update outbox
    set sent_at = null, stream_sequence = null
    where stream = 'events' and sent_at is not null and stream_sequence > ${sequence}`;
  return rows.count;
}

export async function recordedStream(
  sql: Sql,
  stream: StreamName,
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
  stream: StreamName,
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

/** Settles rows that a full write of the snapshot already holds. */
export async function recordSuperseded(tx: Transaction, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    update outbox set sent_at = clock_timestamp()
    where id = any(${[...ids]}::bigint[]) and sent_at is null`;
}
