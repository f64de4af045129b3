import { deleteExpiredAnswers } from "@halyard/idempotency";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";

/**
 * Retention of ended schedules, in days. The list contains them for this time. The latest schedule of each flag
 * and environment stays, because `GET …/schedule` returns it.
 */
const retentionDays = 90;
const cleanUpIntervalMs = 10 * 60 * 1_000;
/** Maximum number of rows per batch. A batch holds its locks for milliseconds. */
const batchSize = 1_000;

/** Periodically deletes ended schedules and expired answers of idempotent requests. */
export function startCleanUp({ sql, logger }: { sql: Sql; logger: Logger }): {
  stop(): Promise<void>;
} {
  return startInterval((signal) => cleanUp(sql, signal), {
    intervalMs: cleanUpIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "cannot delete expired rows; retrying"),
  });
}

export async function cleanUp(sql: Sql, signal?: AbortSignal): Promise<void> {
  while (!signal?.aborted && (await deleteOld(sql)) === batchSize);
  while (!signal?.aborted && (await deleteExpiredAnswers(sql, batchSize)) === batchSize);
}

export async function deleteOld(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from schedules
    where id = any(array(
      select id from schedules
      where not latest and finished_at < present_time() - ${retentionDays} * interval '1 day'
      order by finished_at
      limit ${batchSize}
    ))`;
  return deleted.count;
}
