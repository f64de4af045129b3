import {
  chunkTombstoneLifetimeMs,
  parseEntryKey,
  snapshotBucket,
  tombstoneLifetimeMs,
} from "@halyard/contracts";
import { deleteExpiredAnswers } from "@halyard/idempotency";
import { type Fragment, fragment, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import { removeOldDrafts } from "../change-requests/request-store.ts";
import type { Broker } from "../publishing/broker.ts";
import { inboxLifetimeDays } from "./due-changes.ts";

/**
 * Removes expired data:
 *
 * - outbox rows that were sent seven days ago; until then they can refill an event log that lost them
 * - tombstones of the same age in the snapshot, and the entries of flags in deleted environments
 * - tombstones of chunks after ten minutes
 * - stored responses of repeated requests
 * - stored outcomes of repeated messages
 * - drafts of change requests that nobody has opened
 *
 * The clean-up runs independently of the terms of the leader, because a term ends only after all of its tasks.
 */
const cleanUpIntervalMs = 10 * 60 * 1000;

/** Lifetime of a draft after the last write that made it. */
const draftLifetimeDays = 7;

/** Maximum number of rows per batch, so that a batch holds its locks for milliseconds only. */
const batchSize = 1_000;

/**
 * Maximum number of concurrent purges. Each purge locks the bucket in the broker, and a change waits for at most this
 * many. A few of them hide the round trip.
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
      onFailure: (err) => broker.logger.warn({ err }, "the clean-up failed; retrying later"),
    },
  );
}

export async function cleanUp(
  sql: Sql,
  broker: Pick<Broker, "manager">,
  mayContinue: () => boolean,
): Promise<void> {
  for (const expired of [expiredRows, expiredChunks])
    while (
      mayContinue() &&
      (await cleanOutbox(sql, broker, { expired, mayContinue })) === batchSize
    );
  while (mayContinue() && (await deleteExpiredAnswers(sql, batchSize)) === batchSize);
  while (mayContinue() && (await cleanInbox(sql)) === batchSize);
  while (mayContinue() && (await removeOldDrafts(sql, draftLifetimeDays, batchSize)) === batchSize);
}

const expiredRows = fragment`
  sent_at < clock_timestamp() - ${tombstoneLifetimeMs} * interval '1 millisecond'`;
const expiredChunks = fragment`
  tombstone and split_part(subject, '.', 2) = 'chunk'
  and sent_at < clock_timestamp() - ${chunkTombstoneLifetimeMs} * interval '1 millisecond'`;

type SentRow = {
  id: number;
  subject: string;
  tombstoneSequence: number | null;
  /** Last recorded sequence of the snapshot. After a restore of the database, entries return at later sequences. */
  lastSequence: number;
};

/** Returns the number of removed rows. */
async function cleanOutbox(
  sql: Sql,
  broker: Pick<Broker, "manager">,
  { expired, mayContinue }: { expired: Fragment; mayContinue: () => boolean },
): Promise<number> {
  const rows = await sql<SentRow[]>`
    select id, subject, case when tombstone then stream_sequence end as "tombstoneSequence",
      coalesce((select last_sequence from relay_streams where stream = 'snapshot'), 0)
        as "lastSequence"
    from outbox
    where ${expired}
      -- A tombstone stays while rows of its resource are left.
      and not (tombstone and subject = any(array(select entry_key from deleted_places(0, '', null))))
    order by sent_at
    limit ${batchSize}`;
  // Entries are removed first. After a crash in between, the rows still exist and the purge is repeated.
  const purged = await purgeTombstones(rows, broker, mayContinue);
  const ids = rows.flatMap((row) => (row.tombstoneSequence === null ? [row.id] : []));
  await sql`delete from outbox where id = any(${[...ids, ...purged]}::bigint[])`;
  return ids.length + purged.length;
}

/** Purges tombstones. Returns the ids of their rows. */
async function purgeTombstones(
  rows: readonly SentRow[],
  { manager }: Pick<Broker, "manager">,
  mayContinue: () => boolean,
): Promise<number[]> {
  const purged: number[] = [];
  const remaining = rows.values();
  async function purgeRemaining(): Promise<void> {
    for (const { id, subject, tombstoneSequence, lastSequence } of remaining) {
      if (tombstoneSequence === null) continue;
      if (!mayContinue()) return;
      const flags = flagsOfEnvironment(subject);
      // Flags of a deleted environment have no tombstones. Until now, that of the environment hides them.
      if (flags !== undefined && lastSequence > 0)
        await manager.streams.purge(snapshotBucket.streamName, {
          filter: snapshotBucket.subjectPrefix + flags,
          seq: lastSequence + 1,
        });
      // The bound keeps a later value of the same entry: a restored database may have brought the entry back.
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

/** Returns the filter for the flags of an environment, or undefined for the key of another entry. */
function flagsOfEnvironment(entryKey: string): string | undefined {
  const address = parseEntryKey(entryKey);
  return address?.kind === "environment"
    ? `${address.organizationId}.flag.${address.environmentId}.>`
    : undefined;
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
