import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import {
  deleteOldBulkAnswers,
  deleteOldEdges,
  deleteOldFlagHours,
  deleteOldRequestDays,
} from "./retention/delete-old.ts";
import { type Existing, forgetGone } from "./retention/forget-gone.ts";
import { rollUpHours } from "./retention/roll-up.ts";
import type { UsageMetrics } from "./usage-metrics.ts";

/** Rolls up hours that are long past, and lets go of what nobody asks for any more. */
const cleanUpEveryMs = 10 * 60 * 1_000;
/** Whole tables are walked for it, and nothing is in a hurry to be forgotten. */
const forgetEveryMs = 60 * 60 * 1_000;
/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;

type CleanUpOptions = {
  sql: Sql;
  usageMetrics: Pick<UsageMetrics, "rolledUp">;
  /** Retention period of requests by day; undefined keeps all. */
  keptRequestDays: number | undefined;
};

export function startCleanUp(options: CleanUpOptions & { existing: Existing; logger: Logger }): {
  stop(): Promise<void>;
} {
  const { sql, existing, logger } = options;
  const cleaning = startInterval((signal) => cleanUp(options, () => !signal.aborted), {
    everyMs: cleanUpEveryMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "old hours are not rolled up now"),
  });
  const forget = (signal: AbortSignal) =>
    forgetGone(sql, { existing, mayGoOn: () => !signal.aborted });
  const forgetting = startInterval(forget, {
    everyMs: forgetEveryMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "flags and keys that are gone are not forgotten now"),
  });
  return {
    async stop() {
      await Promise.all([cleaning.stop(), forgetting.stop()]);
    },
  };
}

export async function cleanUp(
  { sql, usageMetrics, keptRequestDays }: CleanUpOptions,
  mayGoOn: () => boolean,
): Promise<void> {
  for (let rolledUp = batchSize; mayGoOn() && rolledUp === batchSize; ) {
    rolledUp = await rollUpHours(sql, batchSize);
    usageMetrics.rolledUp(rolledUp);
  }
  for (const deleteOld of [deleteOldBulkAnswers, deleteOldFlagHours, deleteOldEdges])
    while (mayGoOn() && (await deleteOld(sql, batchSize)) === batchSize);
  if (keptRequestDays === undefined) return;
  const days = { keptDays: keptRequestDays, atMost: batchSize };
  while (mayGoOn() && (await deleteOldRequestDays(sql, days)) === batchSize);
}
