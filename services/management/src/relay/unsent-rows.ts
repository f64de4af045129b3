import type { Sql } from "@halyard/postgres";

/**
 * Unsent rows wait in queues: one for each organization and kind of message. A batch takes the oldest rows of
 * all queues of one kind, equally many from each, so a backlog of one organization does not delay another's
 * change. All rows of an entity are in one queue, therefore their order is kept. There is no watermark, so a
 * row that commits late is found.
 */
export type QueueKind = "events" | "keys" | "flags";

export type UnsentRow = { id: number; messageId: string; subject: string; payload: string };

/** Bounds of a batch: rows that cost few round trips, and bytes that a broker takes in milliseconds. */
export type BatchBounds = { rows: number; bytes: number };

export type UnsentBatch = {
  /** In the order of their ids: as many as fit the bounds, and at least one if any is unsent. */
  rows: UnsentRow[];
  /** Set when there may be more queues than the batch has rows. The next batch begins after this queue. */
  lastQueue: string | undefined;
  /** False when these rows were all that were unsent. A row that commits later has a hint of its own. */
  hasMore: boolean;
};

/** As in the index `outbox_queues`. */
const queue = `(outbox_queue(sent_at, stream, subject, payload) collate "C")`;

/**
 * The first part finds the next queue behind the previous one. Each step, and each queue's rows, are the
 * beginning of a range of `outbox_queues`, so the number of visited rows is about that of returned rows,
 * however many are unsent. The queue is compared as a range: with an equality, a plan could scan the primary key in
 * the order of `id`.
 *
 * The rows of a place are ordered by size, so that large rows do not take the bytes of small ones of other queues.
 */
const selectBatch = `
  with recursive queues (queue, number) as (
    (
      select ${queue}, 1 from outbox
      where ${queue} > $1 and ${queue} < $2
      order by ${queue}, id
      limit 1
    )
    union all
    select next.queue, queues.number + 1
    from queues
    cross join lateral (
      select ${queue} as queue from outbox
      where ${queue} > queues.queue and ${queue} < $2
      order by ${queue}, id
      limit 1
    ) as next
    where queues.number < $3::integer
  ), oldest as (
    select row.*, row_number() over (partition by queues.queue order by row.id) as place
    from queues
    cross join lateral (
      select id, message_id, subject, payload from outbox
      where ${queue} >= queues.queue and ${queue} <= queues.queue
      order by ${queue}, id
      limit (select ceil($3::float / count(*)) from queues)
    ) as row
  ), measured as (
    select *, sum(octet_length(payload)) over (order by place, octet_length(payload), id)
      - octet_length(payload) as bytes_before
    from oldest
    order by place, octet_length(payload), id
    limit $3::integer
  )
  select id, message_id as "messageId", subject, payload,
    (select queue from queues where number = $3::integer) as "lastQueue"
  from measured
  where bytes_before < $4::integer
  order by id`;

/**
 * Fewer unsent rows of a kind than this are read by one plain statement. To plan it costs PostgreSQL a third of what it
 * costs to plan the batch with turns, and in normal operation a change leaves one row of each kind.
 */
const fewRows = 16;

const selectFew = `
  select id, message_id as "messageId", subject, payload from outbox
  where ${queue} > $1 and ${queue} < $2
  order by ${queue}, id
  limit $3::integer`;

/** Returns the next rows of a kind, from the queues after `afterQueue` or from the first one. */
export async function unsentRows(
  sql: Pick<Sql, "unprepared">,
  kind: QueueKind,
  { rows, bytes, afterQueue }: BatchBounds & { afterQueue: string | undefined },
): Promise<UnsentBatch> {
  // Before and after all names that begin with the kind and a space.
  const range = [afterQueue ?? kind, `${kind}!`];
  const few = await sql.unprepared<UnsentRow[]>(selectFew, [...range, fewRows]);
  if (few.length < Math.min(fewRows, rows) && bytesOf(few) <= bytes)
    return {
      rows: few.sort((a, b) => a.id - b.id),
      lastQueue: undefined,
      hasMore: afterQueue !== undefined,
    };
  const found = await sql.unprepared<(UnsentRow & { lastQueue: string | null })[]>(selectBatch, [
    ...range,
    rows,
    bytes,
  ]);
  return { rows: found, lastQueue: found[0]?.lastQueue ?? undefined, hasMore: true };
}

const bytesOf = (rows: readonly UnsentRow[]) =>
  rows.reduce((sum, { payload }) => sum + Buffer.byteLength(payload), 0);
