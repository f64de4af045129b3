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
 * Cancels the schedules of deleted flags: immediately when a deletion arrives, and by checks of all flags that
 * have a schedule. Each interruption schedules two checks, because this process may have missed a deletion. By
 * the second check every schedule is so old that its flag must be in the directory.
 *
 * The first check is delayed. A restored database has flags that the snapshot lists as deleted until management
 * has rebuilt the snapshot. The rebuild is another interruption and restarts the delay. A check during the
 * rebuild does nothing. An outage of PostgreSQL may end with a restored database, so the checks after the
 * outage replace the deletions that could not be written.
 *
 * Every replica does this independently. Cancellation is idempotent. A change of a deleted flag that is sent
 * nevertheless returns with the outcome "cancelled".
 */
const batchSize = 1_000;
/** Management rebuilds a snapshot within seconds. After the second delay, no earlier schedule is new. */
const checkAfterMs: readonly number[] = [30_000, 90_000];

export type SchedulesOfDeletedFlags = OnFlagsGone & { stop(): Promise<void> };

type Options = {
  sql: Sql;
  flags: Pick<FlagDirectory, "statusOf">;
  /** Returns true while the directory follows the snapshot. */
  directoryIsCurrent: () => boolean;
  /** Returns whether the directory is current and the snapshot is not being rebuilt. */
  snapshotIsSettled: () => Promise<boolean>;
  /** Delays after an interruption at which all flags are checked. */
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
  let checks: NodeJS.Timeout[] = [];

  async function work(): Promise<void> {
    while (!stopping.signal.aborted && (deleted.length > 0 || isCheckDue)) {
      const batch = deleted.slice(0, batchSize);
      const checkAll = isCheckDue;
      // An interruption during this check schedules another check.
      isCheckDue = false;
      try {
        if (batch.length > 0) await cancelOfFlags(sql, batch);
        deleted = deleted.slice(batch.length);
        if (checkAll) await cancelOfMissingFlags(options, stopping.signal);
      } catch (error) {
        if (!isOutage(error)) throw error;
        deleted = [];
        checkLater();
        logger.warn({ err: error }, "cannot cancel the schedules of deleted flags; retrying");
      }
    }
    working = undefined;
  }

  function checkNow(): void {
    isCheckDue = true;
    working ??= work();
  }

  function checkLater(): void {
    checks.forEach(clearTimeout);
    checks = checksAfterMs.map((afterMs) => setTimeout(checkNow, afterMs).unref());
  }

  return {
    deleted(scope) {
      deleted.push(scope);
      working ??= work();
    },
    current: checkLater,
    async stop() {
      stopping.abort();
      checks.forEach(clearTimeout);
      await working;
    },
  };
}

/**
 * Cancels the schedules of flags that the directory does not contain. Stops when the directory falls behind,
 * because it would lack new flags. The next full read schedules another check.
 */
async function cancelOfMissingFlags(options: Options, signal: AbortSignal): Promise<void> {
  const { sql, flags, directoryIsCurrent, snapshotIsSettled } = options;
  if (!(await snapshotIsSettled())) return;
  const isGone = (flag: ScheduledFlag) => {
    const status = flags.statusOf(flag);
    return status === "deleted" || (status === "unknown" && !flag.isNew);
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

/** Deletes the schedules of environments whose tombstones arrive in the snapshot. */
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
