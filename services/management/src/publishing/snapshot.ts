import { completeAt, type EntrySigner, hasValidSignature, signComplete } from "@halyard/api-keys";
import {
  type CompleteEntry,
  completeKey,
  entryKey,
  type SnapshotEntry,
  snapshotBucket,
} from "@halyard/contracts";
import { ensureSnapshot, type OutgoingMessage, type StreamPosition } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import {
  findComplete,
  purgeComplete,
  purgeEntriesBefore,
  snapshotPosition,
} from "@halyard/snapshot";
import type { Publications } from "../outbox/effects.ts";
import { type Broker, StreamMovedError } from "./broker.ts";
import { readFullState } from "./full-state.ts";
import { LeadershipLostError, type Lease } from "./lease.ts";
import { recordedStream, recordRebuilding, recordStream } from "./records.ts";
import { createStreamPublisher, outgoingEntry, type StreamPublisher } from "./stream-publisher.ts";

type SnapshotOptions = {
  signer: EntrySigner | undefined;
  publications: Publications;
  newEpoch: () => string;
  isLeading: () => boolean;
};

type SynchronizedSnapshot = StreamPosition & { epoch: string };

/**
 * Synchronizes the outbox and the snapshot before anything is published. The snapshot is rebuilt from the tables in
 * these cases:
 *
 * - It is missing, incomplete or not recorded.
 * - It has lost its newest entries, because the broker died before its disk had them.
 * - Its `complete` entry is not signed with the key of this leader.
 *
 * Entries that were published but not recorded do no harm. No older value of them is unsent any more, and publishing
 * the same value again changes nothing.
 *
 * A bucket that has lost its end may also lack entries that the lost ones had replaced. It must not be read before it
 * is rebuilt, so its entry `complete` is removed first.
 *
 * Returns the position of the stream and its epoch. The next entry follows the last sequence.
 */
export async function synchronizeSnapshot(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  options: SnapshotOptions,
): Promise<SynchronizedSnapshot> {
  const position = await snapshotPosition(broker.manager);
  const recorded = await recordedStream(sql, "snapshot");
  const isRecorded = position?.isComplete === true && recorded?.createdAt === position.createdAt;
  if (!isRecorded) return rebuildSnapshot(sql, lease, broker, options);
  if (position.lastSequence < recorded.lastSequence) {
    await purgeComplete(broker.manager, position.lastSequence);
    return rebuildSnapshot(sql, lease, broker, options);
  }
  // The entry `complete` has the sequence after the base.
  if (position.lastSequence <= recorded.baseSequence)
    return rebuildSnapshot(sql, lease, broker, options);
  if (position.lastSequence > recorded.lastSequence)
    throw new StreamMovedError("the snapshot grew after it was compared with the outbox");

  const found = await findComplete(broker.manager);
  if (found === undefined || !isOwnComplete(options.signer, found))
    return rebuildSnapshot(sql, lease, broker, options);
  return { ...position, epoch: found.complete.epoch };
}

/**
 * Writes the whole snapshot from the tables into the existing bucket, under a new epoch. Readers stay in the old epoch
 * until the entry `complete` names the new one. Until then they see the old entries and the rewritten ones; then they
 * read everything again.
 *
 * 1. Record the rebuild, and mark the old `complete`. From here on, a leader that takes over starts another rebuild.
 *    Until the new `complete`, services remove no rows of deleted scopes.
 * 2. Write every entry after the old ones, page by page. After each page, a bounded number of batches of unsent rows is
 *    published, so that changes do not wait for the rebuild. No page is read or written while rows are published;
 *    otherwise a row could be followed by an older value of its entry. After the last page, every row that is unsent at
 *    that time is published. Such a row may be older than the value of its entry in a page, and readers of the new
 *    epoch would use it. Later rows do not prolong the rebuild.
 * 3. Remove `complete`, then every entry that is still before the first page, because the tables do not contain it. The
 *    purge also removes tombstones. A reader that resumed under the old epoch would miss those deletions. So from here
 *    until step 4 no reader becomes current, and readers keep their state.
 * 4. Record the base and write `complete`, normally milliseconds later.
 *
 * Rows carry revisions of the new epoch. Edges report such a revision only after they have read the new content. So a
 * write during a rebuild waits until its time-out and does not count as confirmed.
 *
 * Returns the position of the stream and the new epoch.
 */
async function rebuildSnapshot(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  options: SnapshotOptions,
): Promise<SynchronizedSnapshot> {
  const epoch = options.newEpoch();
  broker.logger.info({ epoch }, "rebuilding the snapshot");
  const start = await ensureSnapshot(broker.manager, broker.replicas);
  const { createdAt } = start;
  await lease.recordAsLeader((tx) => recordRebuilding(tx, start));
  const { publications, signer, isLeading } = options;
  const publisher = createStreamPublisher({
    ...{ stream: "snapshot", sql, lease, broker, publications, epoch, signer, isLeading },
    lastSequence: start.lastSequence,
  });
  const former = await findComplete(broker.manager);
  // An entry of another client must not get a signature.
  if (former !== undefined && isOwnComplete(signer, former))
    await publisher.write([
      await completeMessage({ ...former.complete, rebuilding: true }, { publisher, signer }),
    ]);
  let entries = 0;
  for await (const page of readFullState(sql)) {
    await publisher.write(await Promise.all(page.map((entry) => outgoing(entry, signer))));
    await publisher.drain({ maxPasses: passesPerPage });
    entries += page.length;
  }
  await publisher.drainPresent();

  if (!isLeading()) throw new LeadershipLostError("the lease ended during a rebuild");
  const from = start.lastSequence + 1;
  await purgeComplete(broker.manager, publisher.lastSequence());
  await purgeEntriesBefore(broker.manager, from);
  const base = publisher.lastSequence();
  // A crash before `complete` leaves a stream that ends at its base, so the next leader starts again.
  await lease.recordAsLeader((tx) =>
    recordStream(tx, "snapshot", {
      createdAt,
      lastSequence: base,
      baseSequence: base,
    }),
  );
  await publisher.write([await completeMessage({ epoch, from }, { publisher, signer })]);
  broker.logger.info({ epoch, entries }, "the snapshot is complete");
  return { createdAt, lastSequence: publisher.lastSequence(), epoch };
}

/** Number of passes after each page. Two batches of keys and two of flags take about as long as a few pages. */
const passesPerPage = 2;

/**
 * Returns the entry `complete` as a message. Its signature contains the next sequence; the publisher writes it at that
 * sequence or not at all.
 */
async function completeMessage(
  entry: CompleteEntry,
  { publisher, signer }: { publisher: StreamPublisher; signer: EntrySigner | undefined },
): Promise<OutgoingMessage> {
  const subject = snapshotBucket.subjectPrefix + completeKey;
  if (signer === undefined) return { subject, payload: JSON.stringify(entry) };
  return { subject, payload: await signComplete(signer, entry, publisher.lastSequence() + 1) };
}

/** Returns whether this signer wrote the entry `complete`: it has a valid signature, or none if there is no signer. */
function isOwnComplete(
  signer: EntrySigner | undefined,
  { complete, sequence }: { complete: CompleteEntry; sequence: number },
): boolean {
  if (signer === undefined) return complete.signed_by === undefined;
  const publicKeys = new Map([[signer.id, signer.publicKey]]);
  return hasValidSignature(completeAt(sequence), complete, publicKeys);
}

const outgoing = ({ address, value }: SnapshotEntry, signer: EntrySigner | undefined) =>
  outgoingEntry({ subject: entryKey(address), payload: JSON.stringify(value) }, signer);
