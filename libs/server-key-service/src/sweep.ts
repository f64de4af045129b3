import type { SnapshotRevision } from "@halyard/contracts";
import { type Interval, startInterval } from "@halyard/timing";
import type { Logger } from "pino";

const sweepIntervalMs = 60 * 60 * 1_000;
/** Requests that were authenticated before a deletion have ended by then. */
const minAgeMs = sweepIntervalMs;
/** Interval at which a sweep that is due checks whether it may begin. */
const pollIntervalMs = 60 * 1_000;

export type SweepOptions = {
  /** Returns the revision of a settled snapshot. */
  settledRevision: () => Promise<SnapshotRevision | undefined>;
  /** Returns another text after PostgreSQL was restarted or the database was replaced. */
  identifyDatabase: () => Promise<string>;
  /** Removes the rows of what was deleted before a time. Calls `mayContinue` before each batch. After a false, all later calls return false. */
  remove: (beforeMs: number, mayContinue: () => Promise<boolean>) => Promise<void>;
  nowMs: () => number;
};

/**
 * Removes the rows that a service stores about deleted scopes, every hour. Only a tombstone is a reason to remove rows,
 * never a missing entry.
 *
 * After a restore of the database, the snapshot contains tombstones of scopes that exist again, until management has
 * rebuilt it. Only the relay's leader writes to the snapshot, and it first compares the database with it. So a sweep
 * waits for a write that follows the first look at this database. Without a leader, nothing is removed.
 */
export function createSweep(options: SweepOptions): (signal: AbortSignal) => Promise<void> {
  const { settledRevision, identifyDatabase, remove, nowMs } = options;
  let first: (SnapshotRevision & { database: string }) | undefined;
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  async function tombstonesAreTrue(): Promise<boolean> {
    const database = await identifyDatabase();
    const settled = await settledRevision();
    if (settled === undefined) return false;
    if (first?.database !== database) first = { ...settled, database };
    // A new epoch begins with a leader's comparison.
    return settled.epoch !== first.epoch || settled.revision > first.revision;
  }

  return async (signal) => {
    const startMs = nowMs();
    if (startMs - sweptAtMs < sweepIntervalMs || !(await tombstonesAreTrue())) return;
    let mayContinue = true;
    await remove(startMs - minAgeMs, async () => {
      mayContinue &&= !signal.aborted && (await tombstonesAreTrue());
      return mayContinue;
    });
    if (mayContinue) sweptAtMs = startMs;
  };
}

export function startSweep(
  options: SweepOptions & {
    isOutage: (error: unknown) => boolean;
    /** Interval of the checks. */
    intervalMs?: number;
    logger: Logger;
  },
): Interval {
  const { isOutage, intervalMs = pollIntervalMs, logger } = options;
  return startInterval(createSweep(options), {
    intervalMs,
    isExpected: isOutage,
    onFailure(err, isRepeated) {
      if (!isRepeated) logger.warn({ err }, "rows of deleted resources were not removed; retrying");
    },
  });
}
