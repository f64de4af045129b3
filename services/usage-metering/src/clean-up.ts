import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import type { UsageMetrics } from "./counting/usage-metrics.ts";
import { addBaselines } from "./retention/flag-baselines.ts";
import { oldRows, rollUpHours } from "./retention/old-rows.ts";
import { type Existing, removeOrphans } from "./retention/remove-orphans.ts";

const cleanUpIntervalMs = 10 * 60 * 1_000;
/** Long, because each run reads whole tables and nothing in them is urgent. */
const removeIntervalMs = 60 * 60 * 1_000;
/** Maximum number of rows in a batch, which holds its locks for milliseconds. */
const atMost = 1_000;

type CleanUpOptions = {
  sql: Sql;
  usageMetrics: Pick<UsageMetrics, "rolledUp">;
  /** Retention period of requests by day; undefined keeps all. */
  requestRetentionDays: number | undefined;
};

/** Starts to roll up old hours, to add the baselines of each day, and to delete rows that are no longer needed. */
export function startCleanUp(options: CleanUpOptions & { existing: Existing; logger: Logger }): {
  stop(): Promise<void>;
} {
  const { sql, existing, logger } = options;
  const every = (
    intervalMs: number,
    failure: string,
    work: (mayContinue: () => boolean) => Promise<void>,
  ) =>
    startInterval((signal) => work(() => !signal.aborted), {
      intervalMs,
      isExpected: isOutage,
      onFailure: (err) => logger.warn({ err }, failure),
    });
  const cleaning = every(cleanUpIntervalMs, "could not sum up or delete old rows", (mayContinue) =>
    cleanUp(options, mayContinue),
  );
  const removing = every(
    removeIntervalMs,
    "could not remove rows of deleted flags and keys",
    (mayContinue) => removeOrphans(sql, { existing, mayContinue }),
  );
  return {
    async stop() {
      await Promise.all([cleaning.stop(), removing.stop()]);
    },
  };
}

export async function cleanUp(
  { sql, usageMetrics, requestRetentionDays }: CleanUpOptions,
  mayContinue: () => boolean,
): Promise<void> {
  for (let rolledUp = atMost; mayContinue() && rolledUp === atMost; ) {
    rolledUp = await rollUpHours(sql, atMost);
    usageMetrics.rolledUp(rolledUp);
  }
  await addBaselines(sql);
  const { requestDays, ...others } = oldRows;
  const days = { ...requestDays, retentionDays: requestRetentionDays };
  for (const { deleteOldest, retentionDays } of [...Object.values(others), days])
    while (
      retentionDays !== undefined &&
      mayContinue() &&
      (await deleteOldest(sql, { retentionDays, atMost })) === atMost
    );
}
