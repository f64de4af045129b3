import { createHash } from "node:crypto";
import { type KeySignatures, withoutSignature } from "@halyard/api-keys";
import {
  completeKey,
  flagEventsStream,
  isSignedEntry,
  parseEntry,
  type SnapshotEntry,
  scheduleStream,
  snapshotBucket,
} from "@halyard/contracts";
import {
  deleteStream,
  type Origin,
  parseJson,
  readMessageIds,
  readPage,
  streamPosition,
  type VerifyMessage,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { snapshotPosition } from "@halyard/snapshot";
import type { Broker } from "./broker.ts";
import { LeadershipLostError, type Lease } from "./lease.ts";
import {
  isRebuilding,
  recordDiscardedQueue,
  recordedStream,
  recordRebuilding,
  recordStream,
  type SettledRow,
  settle,
  type UnrecordedRow,
  unknownEvents,
  unrecordedRows,
} from "./records.ts";

/**
 * Detects a database that is older than the streams: it was restored from a backup, or a standby without the last
 * commits was promoted. Such a database would publish versions that readers have already applied, and readers would
 * ignore them.
 *
 * Everything that a leader published has a row in the outbox. A leader that dies between publishing and recording
 * leaves messages after the recorded sequence, whose rows have no sequence. A message after the recorded sequence
 * without such a row comes from lost commits or from another client.
 *
 * JetStream publishes a reply to any subject that a request names, so any client can store a message in the streams. A
 * malformed entry, or an entry or event without a valid signature, proves nothing about the database. The snapshot that
 * contains it is rebuilt under a new epoch, because readers may have applied a forged version. The other streams stay.
 */
type StreamAhead = typeof flagEventsStream.name | typeof snapshotBucket.bucket;

/** Returns the first stream that contains messages of lost commits. */
export async function findUnexplained(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  { signatures, verify }: { signatures: KeySignatures; verify: VerifyMessage },
): Promise<StreamAhead | undefined> {
  if (await isSnapshotAhead(sql, lease, broker, signatures)) return snapshotBucket.bucket;
  if (await isLogAhead(sql, broker, verify)) return flagEventsStream.name;
  return undefined;
}

/** Number of characters of a key that a log line shows. */
const loggedLength = 200;

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
  // An unfinished rebuild starts again in any case, and replaces every entry.
  if (isRebuilding(recorded) || lastSequence <= recorded.lastSequence) return false;

  const superseded: SettledRow[] = [];
  let foreignKey: string | undefined;
  let read = recorded.lastSequence;
  while (read < lastSequence) {
    const page = await readEntries(broker, read + 1, signatures);
    // Only entries with a recorded sequence are ever removed, so the last entry must exist.
    if (page.lastSequence === undefined) return true;
    const keys = page.entries.map(({ key }) => key);
    const compared = compareEntries(page.entries, await unrecordedRows(sql, keys));
    if (compared.isAhead) return true;
    foreignKey ??= compared.foreignKey;
    superseded.push(...compared.superseded);
    read = page.lastSequence;
  }
  await lease.recordAsLeader(async (tx) => {
    await settle(tx, superseded);
    // The next comparison begins after the messages that this one has explained.
    await recordStream(tx, "snapshot", { ...recorded, lastSequence });
    if (foreignKey !== undefined) await recordRebuilding(tx, position);
  });
  if (foreignKey !== undefined)
    broker.logger.warn(
      // The other client chose the key.
      { key: foreignKey.slice(0, loggedLength) },
      "another client has written to the snapshot; rebuilding it",
    );
  return false;
}

/** An entry after the recorded sequence. It is foreign if it is malformed, or lacks a signature that it needs. */
type FoundEntry = { key: string; sha256: string; isForeign: boolean };

/**
 * Compares entries with the outbox. `superseded` are unsent rows with older values, which must be settled. Otherwise
 * they would be published after the newer value. A reader that starts in between would use them, for example a key that
 * is already revoked.
 */
function compareEntries(entries: readonly FoundEntry[], rows: readonly UnrecordedRow[]) {
  const value = ({ key, sha256 }: FoundEntry | UnrecordedRow) => `${key} ${sha256}`;
  const idOf = new Map(rows.map((row) => [value(row), row.id]));
  // The key of a chunk contains the hash of its data.
  const isExplained = (entry: FoundEntry) =>
    idOf.has(value(entry)) || idOf.has(value({ ...entry, sha256: sha256OfNothing }));
  const published = new Map(entries.map((entry) => [entry.key, idOf.get(value(entry)) ?? 0]));
  return {
    superseded: rows
      .filter(({ id, key, isSent }) => !isSent && id < (published.get(key) ?? 0))
      .map(({ id }) => ({ id, sequence: null })),
    // Another client may also have stored the value of a row without its signature, which readers reject.
    foreignKey: entries.find(({ isForeign }) => isForeign)?.key,
    isAhead: entries.some((entry) => !entry.isForeign && !isExplained(entry)),
  };
}

const sha256OfNothing = createHash("sha256").digest("hex");

async function readEntries(
  { connection, manager }: Broker,
  fromSequence: number,
  signatures: KeySignatures,
) {
  const entries: FoundEntry[] = [];
  const stream = snapshotBucket.streamName;
  const page = await readPage(
    { connection, manager, stream, fromSequence, pageSize },
    ({ subject, payload }) => {
      const { subjectPrefix } = snapshotBucket;
      // If a consumer of another stream delivers into this one, the server stores the message under the subject of that
      // stream.
      const key = subject.startsWith(subjectPrefix) ? subject.slice(subjectPrefix.length) : subject;
      // A rebuild ends with this entry, which has no row. Its signature is verified before the snapshot is used.
      if (key === completeKey) return;
      // Payloads in the outbox are not signed.
      const text = withoutSignature(new TextDecoder().decode(payload));
      const sha256 = createHash("sha256").update(text).digest("hex");
      const parsed = parseEntry(key, parseJson(payload));
      const isGenuine = parsed?.ok && hasItsSignature(key, parsed.value, signatures);
      entries.push({ key, sha256, isForeign: !isGenuine });
    },
  );
  return { entries, lastSequence: page.lastSequence };
}

const isOfWriter = (origin: Origin) => origin !== "forged" && origin !== "foreign";

const hasItsSignature = (key: string, entry: SnapshotEntry, signatures: KeySignatures) =>
  !isSignedEntry(entry) || signatures.isGenuine(key, entry.value);

async function isLogAhead(
  sql: Sql,
  { connection, manager }: Broker,
  verify: VerifyMessage,
): Promise<boolean> {
  const stream = flagEventsStream.name;
  const position = await streamPosition(manager, stream);
  if (position === undefined) return false;
  const recorded = await recordedStream(sql, "events");
  const isRecorded = recorded?.createdAt === position.createdAt;
  let read = isRecorded ? recorded.lastSequence : 0;
  while (read < position.lastSequence) {
    const range = { connection, manager, stream, fromSequence: read + 1, pageSize };
    const page = await readMessageIds(range);
    // The remaining messages have expired.
    if (page.lastSequence === undefined) return false;
    const unknown = await unknownEvents(sql, page.ids.keys());
    if (unknown.size > 0) {
      // The page is read again only now, because its payloads can be too large to keep and cost time to verify.
      let isAhead = false;
      await readPage(range, (message) => {
        isAhead ||= unknown.has(message.messageId ?? "") && isOfWriter(verify(message));
      });
      if (isAhead) return true;
    }
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
