import type { Sql } from "@halyard/postgres";

/** The streams of the outbox: events go to the event log, entries to the snapshot. */
export type StreamName = "events" | "snapshot";

/**
 * Kinds of queues. Unsent rows wait in one queue per organization and kind. All rows of an entity are in the same
 * queue, so their order is preserved. There is no watermark, so rows that commit late are found.
 *
 * `flags`: the entries of flags. `keys`: all other entries of the snapshot, such as those of API keys.
 */
export type QueueKind = "events" | "keys" | "flags";

export type UnsentRow = {
  id: number;
  messageId: string;
  subject: string;
  payload: string;
  traceparent: string | null;
  tracestate: string | null;
};

/** Bounds of a batch: enough rows for few round trips, and few enough bytes for a broker to store in milliseconds. */
type BatchBounds = { rows: number; bytes: number };

/** The expression of the index `outbox_queues`. */
const queue = `(outbox_queue(sent_at, stream, subject, payload) collate "C")`;

/**
 * Selects the oldest rows of each queue, except those in the last parameter. `queues` finds each queue from the previous
 * one. Every step, and the rows of every queue, read the beginning of a range of `outbox_queues`. So the number of
 * visited rows is close to the number of returned rows, even with a large backlog. The conditions on the queue are
 * ranges: with an equality, a plan could scan the primary key in the order of `id`.
 *
 * Rows with the same position in their queues are ordered by size, so that large rows do not crowd out small rows of
 * other queues.
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
  ), taken as (
    select queue from queues where queue <> all($5::text[])
  ), oldest as (
    select row.*, row_number() over (partition by taken.queue order by row.id) as place
    from taken
    cross join lateral (
      select id, message_id, subject, payload, traceparent, tracestate from outbox
      where ${queue} >= taken.queue and ${queue} <= taken.queue
      order by ${queue}, id
      limit (select ceil($3::float / count(*)) from taken)
    ) as row
  ), measured as (
    select *, sum(octet_length(payload)) over (order by place, octet_length(payload), id)
      - octet_length(payload) as bytes_before
    from oldest
    order by place, octet_length(payload), id
    limit $3::integer
  )
  select id, message_id as "messageId", subject, payload, traceparent, tracestate,
    (select queue from queues where number = $3::integer) as "lastQueue"
  from measured
  where bytes_before < $4::integer
  order by id`;

/**
 * The next rows of one kind, in the order of their ids. They fit the bounds, but the batch contains at least one row if
 * any is unsent.
 */
type UnsentBatch = {
  rows: UnsentRow[];
  /** The queue after which the next batch begins. Set if there may be more queues than rows in the batch. */
  lastQueue: string | undefined;
};

/**
 * Reads the oldest rows of all queues of one kind, the same number from each. So a backlog of one organization does not
 * delay changes of another. The batch begins after `afterQueue`, or with the first queue. It has no rows of the queues in
 * `except`.
 */
export async function fairUnsentRows(
  sql: Pick<Sql, "unprepared">,
  kind: QueueKind,
  {
    rows,
    bytes,
    afterQueue,
    except = [],
  }: BatchBounds & { afterQueue: string | undefined; except?: readonly string[] },
): Promise<UnsentBatch> {
  const range = afterAllOf(kind, afterQueue);
  const found = await sql.unprepared<(UnsentRow & { lastQueue: string | null })[]>(selectBatch, [
    ...range,
    rows,
    bytes,
    except,
  ]);
  return { rows: found, lastQueue: found[0]?.lastQueue ?? undefined };
}

/** Returns the name of the queue with the events of an organization. */
export const eventQueueOf = (organizationId: string) => `events ${organizationId}`;

/** Returns the exclusive bounds of the remaining queues of a kind. Their names begin with the kind and a space. */
const afterAllOf = (kind: QueueKind, afterQueue?: string) => [afterQueue ?? kind, `${kind}!`];

/** Exclusive bounds of the queue names of a stream. */
const rangeOf: Readonly<Record<StreamName, readonly [string, string]>> = {
  events: ["events", "events!"],
  snapshot: ["flags", "keys!"],
};

/**
 * Selects all rows of a stream. Planning it costs PostgreSQL a third of planning `selectBatch`. The limit is a
 * subquery: with a constant limit above the number of rows in outdated statistics, a plan could sort all unsent rows.
 */
const selectAll = `
  select id, message_id as "messageId", subject, traceparent, tracestate, fits,
    case when fits then payload end as payload
  from (
    select *, count(*) over () < $3::integer and sum(octet_length(payload)) over () <= $4::integer
      as fits, row_number() over () as place
    from (
      select id, message_id, subject, payload, traceparent, tracestate from outbox
      where ${queue} > $1 and ${queue} < $2
      order by ${queue}, id
      limit (select $3::integer)
    ) as oldest
  ) as measured
  where fits or place = 1`;

/**
 * Returns all unsent rows of a stream in the order of their ids, or undefined if they exceed a batch. Rows that commit
 * later send their own notification.
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
 * Returns the lowest and the highest id of the unsent rows of a stream. The condition on the stream is a range: with an
 * equality, a plan could scan the primary key.
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

/**
 * Returns the number of unsent rows of the streams, counted up to a bound, and the age of the oldest of the counted rows.
 * Leaves out the queues in `except`, without reading their rows: it reads the ranges of `outbox_queues` between them.
 */
export async function readBacklog(
  sql: Sql,
  {
    streams,
    except = [],
    countUpTo,
  }: { streams: readonly StreamName[]; except?: readonly string[]; countUpTo: number },
): Promise<{ rows: number; oldestSeconds: number }> {
  const ranges = streams.flatMap((stream) => rangesWithout(rangeOf[stream], except));
  const [backlog] = await sql.unprepared<{ rows: number; oldestSeconds: number }[]>(
    `select least(count(*), $3::integer)::integer as rows,
      coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)::float as "oldestSeconds"
    from unnest($1::text[], $2::text[]) as range (after, before)
    cross join lateral (
      select created_at from outbox
      where ${queue} > range.after and ${queue} < range.before
      order by ${queue}, id
      limit (select $3::integer)
    ) as unsent`,
    [ranges.map(([after]) => after), ranges.map(([, before]) => before), countUpTo],
  );
  return backlog ?? { rows: 0, oldestSeconds: 0 };
}

/** Splits a range of queues at the queues in `except`. All bounds are exclusive. */
function rangesWithout(
  [first, last]: readonly [string, string],
  except: readonly string[],
): (readonly [string, string])[] {
  const within = except.filter((name) => first < name && name < last).sort();
  return [first, ...within].map((after, index) => [after, within[index] ?? last]);
}
