import { createHash } from "node:crypto";
import { type KeySignatures, withoutSignature } from "@halyard/api-keys";
import { flagEventsStream, scheduleStream, snapshotBucket } from "@halyard/contracts";
import {
  deleteStream,
  readMessageIds,
  readPage,
  snapshotPosition,
  streamPosition,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Broker } from "./broker.ts";
import { compareFound, type FoundEntry, isComplete, isForeign, originOf } from "./found-entries.ts";
import { LeadershipLostError, type Lease } from "./lease.ts";
import {
  hasUnknownEvent,
  isRebuilding,
  type RecordedStream,
  recordDiscardedQueue,
  recordedStream,
  recordRebuilding,
  recordStream,
  settle,
  unrecordedValues,
} from "./records.ts";

/**
 * Detects a database that is older than the streams: it was restored from a backup, or a standby without the last
 * commits was promoted. Such a database would publish versions that readers have already applied, and readers would
 * ignore them.
 *
 * Everything that a leader published has a row in the outbox. A leader that dies between publishing and recording
 * leaves messages after the recorded sequence, whose rows have no sequence. A message after the recorded sequence
 * without such a row comes from lost commits or from another client. Entries that management cannot have written prove
 * nothing about the database. The snapshot that contains them is rebuilt under a new epoch, because readers may have
 * applied a forged version. The other streams stay.
 */
export type StreamAhead = typeof flagEventsStream.name | typeof snapshotBucket.bucket;

/** Returns the first stream that contains messages of lost commits. */
export async function findUnexplained(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  signatures: KeySignatures,
): Promise<StreamAhead | undefined> {
  if (await isSnapshotAhead(sql, lease, broker, signatures)) return snapshotBucket.bucket;
  if (await isLogAhead(sql, broker)) return flagEventsStream.name;
  return undefined;
}

/** Number of messages per look-up in the outbox. It bounds the memory and the duration of a look-up. */
const pageSize = 1_000;

async function isSnapshotAhead(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  signatures: KeySignatures,
): Promise<boolean> {
  const position = await snapshotPosition(broker.manager);
  // An incomplete snapshot is rebuilt in any case.
  if (position?.isComplete !== true) return false;
  const recorded = await recordedStream(sql, "snapshot");
  // A rebuild records its stream before it completes the snapshot.
  if (recorded?.createdAt !== position.createdAt) return true;
  const { lastSequence } = position;
  if (lastSequence <= recorded.lastSequence) return false;
  const behind = await compareBehind(recorded, lastSequence, { sql, broker, signatures });
  if (behind === "ahead") return true;
  const { foreign, superseded } = behind;
  await lease.recordAsLeader(async (tx) => {
    await settle(
      tx,
      superseded.map((id) => ({ id, sequence: null })),
    );
    // The next comparison begins after the messages that this one has explained.
    await recordStream(tx, "snapshot", { ...recorded, lastSequence });
    if (foreign.count > 0) await recordRebuilding(tx, position);
  });
  if (foreign.count > 0)
    broker.logger.warn(
      { entries: foreign.count, first: foreign.first },
      "another client has written to the snapshot; rebuilding it",
    );
  return false;
}

/** Maximum length of a logged key, which another client may have chosen. */
const loggedLength = 200;

/** Compares the entries after the recorded sequence with the outbox. */
async function compareBehind(
  recorded: RecordedStream,
  lastSequence: number,
  { sql, broker, signatures }: { sql: Sql; broker: Broker; signatures: KeySignatures },
) {
  const superseded: number[] = [];
  const foreign = { count: 0, first: "" };
  const add = (key: string) => {
    foreign.first ||= key.slice(0, loggedLength);
    foreign.count += 1;
  };
  let read = recorded.lastSequence;
  // An unfinished rebuild starts again in any case, and removes every foreign entry.
  const isCompared = !isRebuilding(recorded);
  while (read < lastSequence) {
    const page = await readEntries(broker, read + 1);
    // Only entries with a recorded sequence are ever removed, so the last entry must exist.
    if (page.lastSequence === undefined) return "ahead";
    const keys = page.entries.map(({ key }) => key);
    const compared = compareFound(page.entries, await unrecordedValues(sql, keys));
    // Another client may also have stored the value of a row without its signature, which readers reject.
    for (const entry of isCompared ? page.entries : [])
      if (isForeign(entry.key, entry.origin, signatures)) add(entry.key);
      else if (compared.unexplained.has(entry)) return "ahead";
    superseded.push(...compared.superseded);
    read = page.lastSequence;
  }
  return { superseded, foreign };
}

async function readEntries({ connection, manager }: Broker, fromSequence: number) {
  const entries: FoundEntry[] = [];
  const stream = snapshotBucket.streamName;
  const page = await readPage(
    { connection, manager, stream, fromSequence, pageSize },
    ({ subject, payload }) => {
      const { subjectPrefix } = snapshotBucket;
      // If a consumer of another stream delivers into this one, the server stores the message under the subject of that
      // stream.
      const key = subject.startsWith(subjectPrefix) ? subject.slice(subjectPrefix.length) : subject;
      const text = new TextDecoder().decode(payload);
      // A rebuild ends with this entry, which has no row.
      if (isComplete(key, text)) return;
      // Payloads in the outbox are not signed.
      const sha256 = createHash("sha256").update(withoutSignature(text)).digest("hex");
      entries.push({ key, sha256, origin: originOf(key, text) });
    },
  );
  return { entries, lastSequence: page.lastSequence };
}

async function isLogAhead(sql: Sql, { connection, manager }: Broker): Promise<boolean> {
  const stream = flagEventsStream.name;
  const position = await streamPosition(manager, stream);
  if (position === undefined) return false;
  const recorded = await recordedStream(sql, "events");
  const isRecorded = recorded?.createdAt === position.createdAt;
  let read = isRecorded ? recorded.lastSequence : 0;
  while (read < position.lastSequence) {
    const page = await readMessageIds({
      connection,
      manager,
      stream,
      fromSequence: read + 1,
      pageSize,
    });
    // The remaining messages have expired.
    if (page.lastSequence === undefined) return false;
    if (await hasUnknownEvent(sql, [...page.ids.keys()])) return true;
    read = page.lastSequence;
  }
  return false;
}

/**
 * Discards the messages of commits that the database has lost. The queue of due changes and the event log are deleted.
 * The log is then filled from the outbox, dispatchers read it from its beginning, and schedulers send due changes
 * again. The snapshot is rebuilt from the tables under a new epoch.
 *
 * The queue goes first, because the snapshot and the log are the evidence. If this process dies in between, the next
 * leader detects the same condition and repeats the steps.
 */
export async function discardStreams(
  ahead: StreamAhead,
  { lease, broker, isLeading }: { lease: Lease; broker: Broker; isLeading: () => boolean },
): Promise<void> {
  const { logger, manager } = broker;
  logger.warn(
    { stream: ahead },
    "the database is older than the streams, as after a restore; rebuilding the streams from it",
  );
  const queue = await streamPosition(manager, scheduleStream.name);
  if (queue !== undefined)
    await lease.recordAsLeader((tx) => recordDiscardedQueue(tx, queue.createdAt));
  for (const { name } of [scheduleStream, flagEventsStream]) {
    if (!isLeading()) throw new LeadershipLostError("the lease ended before a stream was deleted");
    await deleteStream(manager, name);
  }
  const snapshot = await snapshotPosition(manager);
  if (snapshot !== undefined) await lease.recordAsLeader((tx) => recordRebuilding(tx, snapshot));
}
