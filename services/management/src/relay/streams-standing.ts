import type { Sql, Transaction } from "@halyard/postgres";
import { StreamMovedError } from "./failures.ts";
import { leaseMs } from "./lease.ts";
import type { StreamName } from "./outbox-rows.ts";

/**
 * States whether the database and the streams agree. The leader confirms it once a second, in a row that
 * expires like a lease. The row in a restored database has expired, so nothing that the streams hold
 * takes effect in it before a leader has compared the two.
 */
const confirmation = "streams_confirmed";
/** Names the row with the creation time of the queue of due changes that was discarded last. */
const discardedQueue = "schedule_discarded";

/** The last sequences that this leader has recorded. */
export type RecordedSequences = Partial<Record<StreamName, number>>;

/** Confirms the streams, unless the database has lost what this leader recorded. */
export async function confirmStreams(tx: Transaction, recorded: RecordedSequences): Promise<void> {
  const rows = await tx<{ stream: StreamName; lastSequence: number }[]>`
    select stream, last_sequence as "lastSequence"
    from relay_streams
    where stream in ('events', 'snapshot')`;
  for (const { stream, lastSequence } of rows)
    if (lastSequence < (recorded[stream] ?? 0))
      throw new StreamMovedError(`the database has lost what was recorded of its ${stream}`);
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

/** Returns whether messages of the queue with this creation time take effect. */
export async function queueStanding(
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
