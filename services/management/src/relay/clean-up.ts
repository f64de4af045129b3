import { snapshotBucket, tombstoneLifetimeMs } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import type { Broker } from "./broker.ts";

/**
 * Lets go of what has served: sent rows of the outbox (kept for seven days, to refill a log that lost
 * them), deletions in the snapshot of the same age, and answers kept for repeated requests.
 */
export const cleanUpEveryMs = 10 * 60 * 1000;

/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;
const idempotencyLifetimeHours = 24;

export async function cleanUp(sql: Sql, broker: Broker): Promise<void> {
  let deleted: number;
  do {
    const rows = (await sql<{ subject: string; tombstone: boolean }[]>`
      select id, subject, tombstone and stream_sequence is not null as tombstone
      from outbox
      where sent_at < clock_timestamp() - ${tombstoneLifetimeMs} * interval '1 millisecond'
      order by sent_at
      limit ${batchSize}`) as unknown as { id: number; subject: string; tombstone: boolean }[];
    // The entry goes first: if we die in between, the row is still there to try again.
    for (const row of rows.filter((candidate) => candidate.tombstone))
      await broker.manager.streams.purge(snapshotBucket.streamName, {
        filter: snapshotBucket.subjectPrefix + row.subject,
      });
    await sql`delete from outbox where id = any(${rows.map((row) => row.id)}::bigint[])`;
    deleted = rows.length;
  } while (deleted === batchSize);

  await sql`
    delete from idempotency_keys
    where created_at < clock_timestamp() - ${idempotencyLifetimeHours} * interval '1 hour'`;
}
