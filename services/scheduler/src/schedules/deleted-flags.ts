import { type DeletedScopes, removeOfDeletedScopes } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { FlagDirectory, FlagScope, OnFlagsGone } from "../directory/flag-directory.ts";
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
const checkAfterMs: readonly number[] = [30_000, 90_000];

export type SchedulesOfDeletedFlags = OnFlagsGone & { stop(): Promise<void> };

type Options = {
  sql: Sql;
  flags: Pick<FlagDirectory, "statusOf">;
  /** Whether the directory follows the snapshot at this moment. */
  directoryIsCurrent: () => boolean;
  /** Returns whether the directory is current and the snapshot is not being rebuilt. */
  snapshotIsSettled: () => Promise<boolean>;
  /** Times after an interruption at which every flag is looked at. */
  checkAfterMs?: readonly number[];
  logger: Logger;
};

export function createSchedulesOfDeletedFlags(options: Options): SchedulesOfDeletedFlags {
  const { sql, logger } = options;
  const checksAfterMs = options.checkAfterMs ?? checkAfterMs;
  const stopping = new AbortController();
  let deleted: FlagScope[] = [];
  let isCheckDue = false;
  let working: Promise<void> | undefined;
  let looks: NodeJS.Timeout[] = [];

  async function work(): Promise<void> {
    while (!stopping.signal.aborted && (deleted.length > 0 || isCheckDue)) {
      const batch = deleted.slice(0, batchSize);
      const look = isCheckDue;
      // Another read in the meantime asks for another look.
      isCheckDue = false;
      try {
        if (batch.length > 0) await cancelOfFlags(sql, batch);
        deleted = deleted.slice(batch.length);
        if (look) await cancelOfMissingFlags(options, stopping.signal);
      } catch (error) {
        if (!isOutage(error)) throw error;
        deleted = [];
        checkLater();
        logger.warn({ err: error }, "schedules of deleted flags are not cancelled yet");
      }
    }
    working = undefined;
  }

  function checkNow(): void {
    isCheckDue = true;
    working ??= work();
  }

  function checkLater(): void {
    looks.forEach(clearTimeout);
    looks = checksAfterMs.map((afterMs) => setTimeout(checkNow, afterMs).unref());
  }

  return {
    deleted(scope) {
      deleted.push(scope);
      working ??= work();
    },
    current: checkLater,
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
    const statusOf = flags.statusOf(flag);
    return statusOf === "deleted" || (statusOf === "unknown" && !flag.isNew);
  };
  let last: FlagScope | undefined;
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
}): DeletedScopes {
  return removeOfDeletedScopes({
    ...options,
    kind: "environment",
    remove: (ids, mayContinue) => deleteSchedulesOf(options.sql, ids, mayContinue),
    isOutage,
    monotonicMs: () => performance.now(),
  });
}
