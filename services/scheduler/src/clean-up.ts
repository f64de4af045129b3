import { deleteExpiredAnswers } from "@halyard/idempotency";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";

/**
 * Lets go of schedules that are done, and of answers that were kept for repeated requests. The list
 * shows schedules for 90 days; the latest one of each flag and environment stays, because it is what
 * reading the schedule answers.
 */
const retentionDays = 90;
const cleanUpIntervalMs = 10 * 60 * 1_000;
/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;

export function startCleanUp({ sql, logger }: { sql: Sql; logger: Logger }): {
  stop(): Promise<void>;
} {
  return startInterval((signal) => cleanUp(sql, signal), {
    intervalMs: cleanUpIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "what is old is not cleaned up now"),
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
