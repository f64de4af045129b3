import { snapshotBucket, tombstoneLifetimeMs } from "@halyard/contracts";
import { deleteExpiredAnswers } from "@halyard/idempotency";
import type { Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Broker } from "../relay/broker.ts";
import { inboxLifetimeDays } from "../schedule/due-changes.ts";

/**
 * Removes what is no longer needed: sent rows of the outbox (kept for seven days, to refill a log that
 * lost them), deletions in the snapshot of the same age, stored answers of repeated requests, and stored
 * outcomes of repeated messages.
 *
 * It runs beside the rounds of the leader, because a round ends only after all of its tasks.
 */
const cleanUpIntervalMs = 10 * 60 * 1000;

/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;

/**
 * Each purge locks the bucket in the broker. A change waits for these purges at most, and a few of them
 * hide the round trip.
 */
const purgesAtOnce = 4;

export function startCleanUp(options: {
  sql: Sql;
  broker: Broker;
  isLeading: () => boolean;
  intervalMs?: number;
}): { stop(): Promise<void> } {
  const { sql, broker, isLeading } = options;
  return startInterval(
    async (signal) => {
      if (isLeading()) await cleanUp(sql, broker, () => !signal.aborted && isLeading());
    },
    {
      intervalMs: options.intervalMs ?? cleanUpIntervalMs,
      isExpected: () => true,
      onFailure: (err) => broker.logger.warn({ err }, "the clean-up failed; it runs again later"),
    },
  );
}

export async function cleanUp(
  sql: Sql,
  broker: Pick<Broker, "manager">,
  mayContinue: () => boolean,
): Promise<void> {
  while (mayContinue() && (await cleanOutbox(sql, broker, mayContinue)) === batchSize);
  while (mayContinue() && (await deleteExpiredAnswers(sql, batchSize)) === batchSize);
  while (mayContinue() && (await cleanInbox(sql)) === batchSize);
}

type SentRow = { id: number; subject: string; tombstoneSequence: number | null };

/** Returns the number of removed rows. */
async function cleanOutbox(
  sql: Sql,
  broker: Pick<Broker, "manager">,
  mayContinue: () => boolean,
): Promise<number> {
  const rows = await sql<SentRow[]>`
    select id, subject, case when tombstone then stream_sequence end as "tombstoneSequence"
    from outbox
    where sent_at < clock_timestamp() - ${tombstoneLifetimeMs} * interval '1 millisecond'
      -- A tombstone stays while rows are left below it.
      and not (tombstone and subject = any(array(select entry_key from deleted_places(0, '', null))))
    order by sent_at
    limit ${batchSize}`;
  // Entries go first: after a crash in between, the rows are still there.
  const purged = await purgeTombstones(rows, broker, mayContinue);
  const ids = rows.flatMap((row) => (row.tombstoneSequence === null ? [row.id] : []));
  await sql`delete from outbox where id = any(${[...ids, ...purged]}::bigint[])`;
  return ids.length + purged.length;
}

/** Returns the ids of the rows whose tombstones are gone. */
async function purgeTombstones(
  rows: readonly SentRow[],
  { manager }: Pick<Broker, "manager">,
  mayContinue: () => boolean,
): Promise<number[]> {
  const purged: number[] = [];
  const remaining = rows.values();
  async function purgeRemaining(): Promise<void> {
    for (const { id, subject, tombstoneSequence } of remaining) {
      if (tombstoneSequence === null) continue;
      if (!mayContinue()) return;
      // A later value of the same entry stays: a restored database may have brought the entry back.
      await manager.streams.purge(snapshotBucket.streamName, {
        filter: snapshotBucket.subjectPrefix + subject,
        seq: tombstoneSequence + 1,
      });
      purged.push(id);
    }
  }
  await Promise.all(Array.from({ length: purgesAtOnce }, purgeRemaining));
  return purged;
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
