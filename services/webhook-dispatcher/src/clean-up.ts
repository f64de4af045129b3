import { forgetAnswers } from "@halyard/idempotency";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { giveUpOldDeliveries } from "./deliveries/give-up-old-deliveries.ts";

/**
 * Ends deliveries that were never made for as long as they would be kept, and lets go of those that ended
 * long ago, with their attempts, of events that come no more, and of answers that were kept for repeated
 * requests.
 */
const cleanUpEveryMs = 10 * 60 * 1_000;
/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;
/** The log keeps an event for seven days, and until then it can come again. */
const eventsKeptDays = 8;

export function startCleanUp(options: {
  sql: Sql;
  /** How long deliveries are kept after their end. */
  keptDays: number;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, keptDays, logger } = options;
  return startInterval((signal) => cleanUp(sql, { keptDays, mayGoOn: () => !signal.aborted }), {
    everyMs: cleanUpEveryMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "old deliveries are not cleaned up now"),
  });
}

export async function cleanUp(
  sql: Sql,
  { keptDays, mayGoOn }: { keptDays: number; mayGoOn: () => boolean },
): Promise<void> {
  const old = { keptDays, atMost: batchSize };
  while (mayGoOn() && (await giveUpOldDeliveries(sql, old)) === batchSize);
  while (mayGoOn() && (await deleteOldDeliveries(sql, keptDays)) === batchSize);
  while (mayGoOn() && (await deleteOldEvents(sql)) === batchSize);
  while (mayGoOn() && (await forgetAnswers(sql, batchSize)) === batchSize);
}

/** One that a person has just asked to be made again has not ended any more. */
export async function deleteOldDeliveries(sql: Sql, keptDays: number): Promise<number> {
  const deleted = await sql`
    delete from deliveries
    where id = any(array(
      select id from deliveries
      where finished_at < now() - ${keptDays} * interval '1 day'
      order by finished_at
      limit ${batchSize}
    )) and finished_at is not null`;
  return deleted.count;
}

export async function deleteOldEvents(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from inbox
    where event_id = any(array(
      select event_id from inbox
      where received_at < now() - ${eventsKeptDays} * interval '1 day'
      order by received_at
      limit ${batchSize}
    ))`;
  return deleted.count;
}
