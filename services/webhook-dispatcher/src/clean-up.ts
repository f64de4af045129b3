import { deleteExpiredAnswers } from "@halyard/idempotency";
import { isOutage, type Sql } from "@halyard/postgres";
import { releaseAll } from "@halyard/service";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { giveUpOldDeliveries } from "./deliveries/delivery-store.ts";
import type { SecretBox } from "./secrets/secret-box.ts";
import { startCancellingLeftovers } from "./webhooks/cancel-deliveries.ts";
import { startKeepingSecrets } from "./webhooks/webhook-secrets.ts";

/**
 * Ends deliveries that were never made for as long as they would be kept, and lets go of those that ended
 * long ago, with their attempts, of events that come no more, and of answers that were kept for repeated
 * requests.
 */
const cleanUpIntervalMs = 10 * 60 * 1_000;
/** Small enough that a batch holds its locks for milliseconds. */
const batchSize = 1_000;
/** The log keeps an event for seven days, and until then it can come again. */
const eventRetentionDays = 8;

export function startCleanUp(options: {
  sql: Sql;
  secrets: SecretBox;
  /** How long deliveries are kept after their end. */
  retentionDays: number;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, retentionDays, logger } = options;
  const deleting = startInterval((signal) => cleanUp(sql, { retentionDays, signal }), {
    intervalMs: cleanUpIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "old deliveries are not cleaned up now"),
  });
  const parts = [deleting, startKeepingSecrets(options), startCancellingLeftovers(options)];
  return { stop: () => releaseAll(parts.map(({ stop }) => stop)) };
}

export async function cleanUp(
  sql: Sql,
  { retentionDays, signal }: { retentionDays: number; signal?: AbortSignal },
): Promise<void> {
  const old = { retentionDays, atMost: batchSize };
  while (!signal?.aborted && (await giveUpOldDeliveries(sql, old)) === batchSize);
  while (!signal?.aborted && (await deleteOldDeliveries(sql, retentionDays)) === batchSize);
  while (!signal?.aborted && (await deleteOldEvents(sql)) === batchSize);
  while (!signal?.aborted && (await deleteExpiredAnswers(sql, batchSize)) === batchSize);
}

/** One that a person has just asked to be made again has not ended any more. */
export async function deleteOldDeliveries(sql: Sql, retentionDays: number): Promise<number> {
  const deleted = await sql`
    delete from deliveries
    where id = any(array(
      select id from deliveries
      where finished_at < now() - ${retentionDays} * interval '1 day'
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
      where received_at < now() - ${eventRetentionDays} * interval '1 day'
      order by received_at
      limit ${batchSize}
    ))`;
  return deleted.count;
}
