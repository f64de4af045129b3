import { isOutage, type Sql } from "@halyard/postgres";
import type { SweepOptions } from "@halyard/server-key-service";
import type { Deletions } from "@halyard/snapshot";
import type { Logger } from "pino";
import type { FlagScope } from "../directory/flag-directory.ts";
import { cancelOfFlags, deleteSchedulesOf } from "./schedule-store.ts";

/** Maximum number of rows per batch. A batch holds its locks for milliseconds. */
const batchSize = 1_000;

type CancelOnDeletion = { deleted(scope: FlagScope): void; stop(): Promise<void> };

/**
 * Cancels the schedules of a flag when its deletion arrives. Every replica does this, because it is idempotent. The
 * sweep cancels the schedules of missed deletions. If a change is due before, management does not find the flag, and
 * answers with the outcome "cancelled".
 */
export function createCancelOnDeletion({
  sql,
  logger,
}: {
  sql: Sql;
  logger: Logger;
}): CancelOnDeletion {
  const deleted: FlagScope[] = [];
  let working: Promise<void> | undefined;

  async function cancelAll(): Promise<void> {
    while (deleted.length > 0) {
      try {
        await cancelOfFlags(sql, deleted.splice(0, batchSize));
      } catch (err) {
        if (!isOutage(err)) throw err;
        // The outage may end with a restored database, which has the flags.
        deleted.length = 0;
        logger.warn({ err }, "the schedules of deleted flags are left to the sweep");
      }
    }
    working = undefined;
  }

  return {
    deleted(scope) {
      deleted.push(scope);
      working ??= cancelAll();
    },
    async stop() {
      deleted.length = 0;
      await working;
    },
  };
}

/** Returns what the sweep does: it cancels the schedules of deleted flags, and deletes those of environments. */
export function createRemove(
  sql: Sql,
  deletions: Pick<Deletions, "before">,
): SweepOptions["remove"] {
  return async (beforeMs, mayContinue) => {
    const flags = deletions.before("flag", beforeMs);
    while (flags.length > 0 && (await mayContinue()))
      await cancelOfFlags(sql, flags.splice(0, batchSize));
    const environments = deletions.before("environment", beforeMs);
    const ids = environments.map(({ environmentId }) => environmentId);
    while ((await mayContinue()) && (await deleteSchedulesOf(sql, ids, batchSize)) === batchSize);
  };
}
