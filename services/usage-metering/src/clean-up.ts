import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import type { UsageMetrics } from "./counting/usage-metrics.ts";
import { type Existing, forgetGone } from "./retention/forget-gone.ts";
import { oldRows, rollUpHours } from "./retention/old-rows.ts";

const cleanUpEveryMs = 10 * 60 * 1_000;
/** Walks whole tables, and nothing in them is urgent. */
const forgetEveryMs = 60 * 60 * 1_000;
/** A batch holds its locks for milliseconds. */
const atMost = 1_000;

type CleanUpOptions = {
  sql: Sql;
  usageMetrics: Pick<UsageMetrics, "rolledUp">;
  /** Retention period of requests by day; undefined keeps all. */
  keptRequestDays: number | undefined;
};

/** Rolls up old hours, and deletes what is no longer needed. */
export function startCleanUp(options: CleanUpOptions & { existing: Existing; logger: Logger }): {
  stop(): Promise<void>;
} {
  const { sql, existing, logger } = options;
  const every = (
    everyMs: number,
    failure: string,
    work: (mayGoOn: () => boolean) => Promise<void>,
  ) =>
    startInterval((signal) => work(() => !signal.aborted), {
      everyMs,
      isExpected: isOutage,
      onFailure: (err) => logger.warn({ err }, failure),
    });
  const cleaning = every(cleanUpEveryMs, "old hours are not rolled up now", (mayGoOn) =>
    cleanUp(options, mayGoOn),
  );
  const forgetting = every(
    forgetEveryMs,
    "flags and keys that are gone are not forgotten now",
    (mayGoOn) => forgetGone(sql, { existing, mayGoOn }),
  );
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
  for (let rolledUp = atMost; mayGoOn() && rolledUp === atMost; ) {
    rolledUp = await rollUpHours(sql, atMost);
    usageMetrics.rolledUp(rolledUp);
  }
  const { bulkAnswers, flagHours, edges, requestDays } = oldRows;
  const days = { ...requestDays, keptDays: keptRequestDays };
  for (const { deleteOldest, keptDays } of [bulkAnswers, flagHours, edges, days])
    while (
      keptDays !== undefined &&
      mayGoOn() &&
      (await deleteOldest(sql, { keptDays, atMost })) === atMost
    );
}
