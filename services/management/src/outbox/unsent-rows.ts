import type { Sql } from "@halyard/postgres";

/** Events go to the log, entries to the snapshot. */
export type StreamName = "events" | "snapshot";

/**
 * Unsent rows wait in queues: one for each organization and kind of message. All rows of an entity are in one queue,
 * therefore their order is kept. There is no watermark, so a row that commits late is found.
 */
export type QueueKind = "events" | "keys" | "flags";

export type UnsentRow = { id: number; messageId: string; subject: string; payload: string };

/** Bounds of a batch: rows that cost few round trips, and bytes that a broker takes in milliseconds. */
export type BatchBounds = { rows: number; bytes: number };

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

/** The next rows of one kind, in the order of their ids: as many as fit the bounds, and at least one if any is unsent. */
export type UnsentBatch = {
  rows: UnsentRow[];
  /** Set when there may be more queues than the batch has rows. The next batch begins after this queue. */
  lastQueue: string | undefined;
};

/**
 * Reads the oldest rows of all queues of one kind, equally many from each, so a backlog of one organization does not
 * delay another's change. Begins after a queue, or with the first one.
 */
export async function fairUnsentRows(
  sql: Pick<Sql, "unprepared">,
  kind: QueueKind,
  { rows, bytes, afterQueue }: BatchBounds & { afterQueue: string | undefined },
): Promise<UnsentBatch> {
  const range = afterAllOf(kind, afterQueue);
  const found = await sql.unprepared<(UnsentRow & { lastQueue: string | null })[]>(selectBatch, [
    ...range,
    rows,
    bytes,
  ]);
  return { rows: found, lastQueue: found[0]?.lastQueue ?? undefined };
}

/** Before and after all names of queues that begin with the kind and a space. */
const afterAllOf = (kind: QueueKind, afterQueue?: string) => [afterQueue ?? kind, `${kind}!`];

/** The names of the queues of a stream, which are those of one range. */
const rangeOf: Readonly<Record<StreamName, readonly [string, string]>> = {
  events: ["events", "events!"],
  snapshot: ["flags", "keys!"],
};

/**
 * To plan this costs PostgreSQL a third of what it costs to plan the batch with turns. The limit is a query, because
 * with a known limit above the number of rows that old statistics promise, a plan could sort all unsent rows.
 */
const selectAll = `
  select id, message_id as "messageId", subject, fits, case when fits then payload end as payload
  from (
    select *, count(*) over () < $3::integer and sum(octet_length(payload)) over () <= $4::integer
      as fits, row_number() over () as place
    from (
      select id, message_id, subject, payload from outbox
      where ${queue} > $1 and ${queue} < $2
      order by ${queue}, id
      limit (select $3::integer)
    ) as oldest
  ) as measured
  where fits or place = 1`;

/**
 * Returns all unsent rows of a stream in the order of their ids, or undefined if they exceed a batch. A row that commits
 * later has its own hint.
 */
export async function allUnsentRows(
  sql: Pick<Sql, "unprepared">,
  stream: StreamName,
  { rows, bytes }: BatchBounds,
): Promise<UnsentRow[] | undefined> {
  const parameters = [...rangeOf[stream], rows, bytes];
  const found = await sql.unprepared<(UnsentRow & { fits: boolean })[]>(selectAll, parameters);
  if (found[0]?.fits === false) return undefined;
  return found.sort((a, b) => a.id - b.id);
}

/**
 * Returns the first and the last id of a stream's unsent rows. The stream is compared as a range: with an equality, a
 * plan could scan the primary key.
 */
export async function unsentRange(
  sql: Pick<Sql, "unprepared">,
  stream: StreamName,
): Promise<{ oldest: number | undefined; newest: number | undefined }> {
  const [range] = await sql.unprepared<{ oldest: number | null; newest: number | null }[]>(
    `select
      (
        select id from outbox
        where stream >= $1 and stream <= $1 and sent_at is null
        order by stream, id
        limit 1
      ) as oldest,
      (
        select id from outbox
        where stream >= $1 and stream <= $1 and sent_at is null
        order by stream desc, id desc
        limit 1
      ) as newest`,
    [stream],
  );
  return { oldest: range?.oldest ?? undefined, newest: range?.newest ?? undefined };
}

/** How much is unsent, counted up to a bound, and since when the oldest of it waits. */
export async function readBacklog(
  sql: Sql,
  countUpTo: number,
): Promise<{ rows: number; oldestSeconds: number }> {
  const [backlog] = await sql.unprepared<{ rows: number; oldestSeconds: number }[]>(
    `select count(*)::integer as rows,
      coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float as "oldestSeconds"
    from (
      select created_at from outbox
      where sent_at is null
      -- The order of an index, so that no plan scans the sent rows.
      order by stream, id
      limit $1::integer
    ) as unsent`,
    [countUpTo],
  );
  return backlog ?? { rows: 0, oldestSeconds: 0 };
}
