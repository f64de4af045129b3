import {
  type CompleteEntry,
  checkCompleteEntry,
  completeKey,
  snapshotBucket,
} from "@halyard/contracts";
import { findNewest, findStream, positionOf, type StreamPosition } from "@halyard/jetstream";
import type { JetStreamManager } from "@nats-io/jetstream";

type SnapshotPosition = StreamPosition & {
  /** True if the snapshot contains the entry `complete`, which ends a full write. */
  isComplete: boolean;
};

/**
 * Returns the position of the snapshot; undefined if it does not exist. The response comes from the stream's leader.
 * A direct get could be served by a replica that lags.
 */
export async function snapshotPosition(
  manager: JetStreamManager,
): Promise<SnapshotPosition | undefined> {
  const info = await findStream(manager, snapshotBucket.streamName, {
    subjects_filter: snapshotBucket.subjectPrefix + completeKey,
  });
  if (info === undefined) return undefined;
  const isComplete = Object.keys(info.state.subjects ?? {}).length > 0;
  return { ...positionOf(info), isComplete };
}

/**
 * Returns the entry `complete` of the snapshot and its sequence, which its signature covers; undefined while the
 * snapshot is missing or incomplete.
 */
export async function findComplete(
  manager: JetStreamManager,
): Promise<{ complete: CompleteEntry; sequence: number } | undefined> {
  const found = await findNewest(manager, snapshotBucket, {
    key: completeKey,
    check: checkCompleteEntry,
  });
  return found && { complete: found.value, sequence: found.sequence };
}

/** Removes all entries before a sequence, except `complete`. */
export async function purgeEntriesBefore(
  manager: JetStreamManager,
  sequence: number,
): Promise<void> {
  // nats-server treats the sequence 1 as absent, and would remove all entries.
  if (sequence <= 1) return;
  await manager.streams.purge(snapshotBucket.streamName, {
    // Keys of entries have several tokens, `complete` has one.
    filter: `${snapshotBucket.subjectPrefix}*.>`,
    seq: sequence,
  });
}

/** Removes the entry `complete`, unless it is later than this sequence. Readers keep their state. */
export async function purgeComplete(manager: JetStreamManager, upTo: number): Promise<void> {
  await manager.streams.purge(snapshotBucket.streamName, {
    filter: snapshotBucket.subjectPrefix + completeKey,
    seq: upTo + 1,
  });
}
