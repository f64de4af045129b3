import { snapshotBatchEntries } from "@halyard/contracts";

/** A reader's state of the snapshot. */
export type HeldSnapshot = {
  epoch: string;
  /** Sequence of the stream up to which the state contains every entry. */
  revision: number;
  /** Last time at which the state was current, as Unix time in milliseconds. */
  currentAtMs: number;
};

/**
 * Maximum time since the state was current. The bucket keeps tombstones for a week, so no tombstone can be written and
 * removed within a day. The rest of the week allows for clock differences. Only deletions of chunks leave the bucket
 * earlier; a reader that misses one removes the chunk when it receives the audience.
 */
export const maxGapMs = 24 * 60 * 60 * 1_000;

/**
 * Returns the first sequence of a read that completes this state; undefined if a full read is necessary.
 * docs/decisions/0069-snapshot-in-jetstream-kv.md contains the reasons.
 *
 * The read repeats the last batch before the revision. A broker that loses its newest messages in a crash may assign
 * their sequences to other entries. If it loses more than one batch, the relay detects the loss and writes the snapshot
 * with a new epoch.
 */
export function resumePoint(
  held: HeldSnapshot,
  found: { epoch: string; lastSequence: number; nowMs: number },
): number | undefined {
  const { epoch, revision, currentAtMs } = held;
  const isSafe =
    epoch === found.epoch &&
    revision <= found.lastSequence &&
    Math.abs(found.nowMs - currentAtMs) < maxGapMs;
  return isSafe ? Math.max(1, revision + 1 - snapshotBatchEntries) : undefined;
}
