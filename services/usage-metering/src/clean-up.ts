import { isOutage, type Sql } from "@halyard/postgres";
import { type Interval, startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import type { UsageMetrics } from "./counting/usage-metrics.ts";
import { addBaselines } from "./retention/flag-baselines.ts";
import { oldRows, rollUpHours } from "./retention/old-rows.ts";

const cleanUpIntervalMs = 10 * 60 * 1_000;
/** Maximum number of rows in a batch, which holds its locks for milliseconds. */
const atMost = 1_000;

type CleanUpOptions = {
  sql: Sql;
  usageMetrics: Pick<UsageMetrics, "rolledUp">;
  /** Retention period of requests by day; undefined keeps all. */
  requestRetentionDays: number | undefined;
};

/** Starts to roll up old hours, to add the baselines of each day, and to delete rows that are no longer needed. */
export function startCleanUp(options: CleanUpOptions & { logger: Logger }): Interval {
  return startInterval((signal) => cleanUp(options, () => !signal.aborted), {
    intervalMs: cleanUpIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => options.logger.warn({ err }, "could not sum up or delete old rows"),
  });
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
