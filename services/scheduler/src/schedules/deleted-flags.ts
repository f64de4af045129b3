import { type DeletedPlaces, removeOfDeletedPlaces } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { FlagDirectory, FlagPlace, OnFlagsGone } from "../directory/flag-directory.ts";
import {
  cancelOfFlags,
  deleteSchedulesOf,
  listScheduledFlags,
  type ScheduledFlag,
} from "./schedule-store.ts";

/**
 * Cancels the schedules of deleted flags: immediately when the deletion arrives, and by looks at every flag
 * with a schedule. A look follows some time after each interruption, because this process may have missed a
 * deletion, and another one when each schedule is so old that its flag must be in the directory.
 *
 * The first look waits because a restored database has flags that the snapshot calls deleted, until
 * management has rebuilt the snapshot. That is another interruption, and the wait begins again. While the
 * rebuild is under way, there is no look. An outage of PostgreSQL may end with such a database, so deletions
 * that could not be written are left to the looks after it.
 *
 * Every replica does so for itself. Cancelling twice is cancelling once; and a change of a deleted
 * flag that is sent all the same comes back as cancelled.
 */
const batchSize = 1_000;
/** Management rebuilds a snapshot within seconds. The second time is a little longer than a schedule is new. */
const lookAfterMs: readonly number[] = [30_000, 90_000];

export type SchedulesOfDeletedFlags = OnFlagsGone & { stop(): Promise<void> };

type Options = {
  sql: Sql;
  flags: Pick<FlagDirectory, "standing">;
  /** Whether the directory follows the snapshot at this moment. */
  directoryIsCurrent: () => boolean;
  /** Returns whether the directory is current and the snapshot is not being rebuilt. */
  snapshotIsSettled: () => Promise<boolean>;
  /** Times after an interruption at which every flag is looked at. */
  lookAfterMs?: readonly number[];
  logger: Logger;
};

export function createSchedulesOfDeletedFlags(options: Options): SchedulesOfDeletedFlags {
  const { sql, logger } = options;
  const looksAfterMs = options.lookAfterMs ?? lookAfterMs;
  const stopping = new AbortController();
  let deleted: FlagPlace[] = [];
  let isLookDue = false;
  let working: Promise<void> | undefined;
  let looks: NodeJS.Timeout[] = [];

  async function work(): Promise<void> {
    while (!stopping.signal.aborted && (deleted.length > 0 || isLookDue)) {
      const batch = deleted.slice(0, batchSize);
      const look = isLookDue;
      // Another read in the meantime asks for another look.
      isLookDue = false;
      try {
        if (batch.length > 0) await cancelOfFlags(sql, batch);
        deleted = deleted.slice(batch.length);
        if (look) await cancelOfMissingFlags(options, stopping.signal);
      } catch (error) {
        if (!isOutage(error)) throw error;
        deleted = [];
        lookLater();
        logger.warn({ err: error }, "schedules of deleted flags are not cancelled yet");
      }
    }
    working = undefined;
  }

  function lookNow(): void {
    isLookDue = true;
    working ??= work();
  }

  function lookLater(): void {
    looks.forEach(clearTimeout);
    looks = looksAfterMs.map((afterMs) => setTimeout(lookNow, afterMs).unref());
  }

  return {
    deleted(place) {
      deleted.push(place);
      working ??= work();
    },
    current: lookLater,
    async stop() {
      stopping.abort();
      looks.forEach(clearTimeout);
      await working;
    },
  };
}

/** A directory that is behind knows nothing of new flags; the next full read asks for another look. */
async function cancelOfMissingFlags(options: Options, signal: AbortSignal): Promise<void> {
  const { sql, flags, directoryIsCurrent, snapshotIsSettled } = options;
  if (!(await snapshotIsSettled())) return;
  const isGone = (flag: ScheduledFlag) => {
    const standing = flags.standing(flag);
    return standing === "deleted" || (standing === "unknown" && !flag.isNew);
  };
  let last: FlagPlace | undefined;
  do {
    const page = await listScheduledFlags(sql, last, batchSize);
    if (signal.aborted || !directoryIsCurrent()) return;
    const gone = page.filter(isGone);
    if (gone.length > 0) await cancelOfFlags(sql, gone);
    last = page.length === batchSize ? page.at(-1) : undefined;
  } while (last !== undefined);
}

/** Deletes the schedules of environments whose deletion arrives in the snapshot. */
export function deleteSchedulesOfDeleted(options: {
  sql: Sql;
  settledRevision: () => Promise<number | undefined>;
  logger: Logger;
}): DeletedPlaces {
  return removeOfDeletedPlaces({
    ...options,
    kind: "environment",
    remove: (ids, mayGoOn) => deleteSchedulesOf(options.sql, ids, mayGoOn),
    isOutage,
    monotonicMs: () => performance.now(),
  });
}
