import { snapshotBucket, tombstoneLifetimeMs } from "@halyard/contracts";
import { forgetAnswers } from "@halyard/idempotency";
import type { Sql } from "@halyard/postgres";
import { inboxLifetimeDays } from "../schedule/inbox-store.ts";
import type { Broker } from "./broker.ts";

/**
 * Lets go of what has served: sent rows of the outbox (kept for seven days, to refill a log that lost
 * them), deletions in the snapshot of the same age, answers kept for repeated requests, and outcomes kept
 * for repeated messages.
 */
export const cleanUpEveryMs = 10 * 60 * 1000;

/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;

export async function cleanUp(sql: Sql, broker: Broker): Promise<void> {
  while ((await cleanOutbox(sql, broker)) === batchSize);
  while ((await forgetAnswers(sql, batchSize)) === batchSize);
  while ((await cleanInbox(sql)) === batchSize);
}

async function cleanOutbox(sql: Sql, { manager }: Broker): Promise<number> {
  const rows = await sql<{ id: number; subject: string; leavesSnapshot: boolean }[]>`
    select id, subject, tombstone and stream_sequence is not null as "leavesSnapshot"
    from outbox
    where sent_at < clock_timestamp() - ${tombstoneLifetimeMs} * interval '1 millisecond'
    order by sent_at
    limit ${batchSize}`;
  // The entry goes first: if we die in between, the row is still there to try again.
  for (const row of rows.filter((candidate) => candidate.leavesSnapshot))
    await manager.streams.purge(snapshotBucket.streamName, {
      filter: snapshotBucket.subjectPrefix + row.subject,
    });
  await sql`delete from outbox where id = any(${rows.map((row) => row.id)}::bigint[])`;
  return rows.length;
}

async function cleanInbox(sql: Sql): Promise<number> {
  const rows = await sql`
    delete from inbox
    where ctid = any(array(
      select ctid from inbox
      where processed_at < clock_timestamp() - ${inboxLifetimeDays} * interval '1 day'
      limit ${batchSize}
    ))`;
  return rows.count;
}
