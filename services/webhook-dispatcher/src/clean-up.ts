import { deleteExpiredAnswers } from "@halyard/idempotency";
import { isOutage, type Sql } from "@halyard/postgres";
import { releaseAll } from "@halyard/service";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import { giveUpOldDeliveries } from "./deliveries/delivery-store.ts";
import { startErasing } from "./events/erasures.ts";
import type { SecretBox } from "./secrets/secret-box.ts";
import { startCancellingLeftovers } from "./webhooks/cancel-deliveries.ts";
import { startSecretMaintenance } from "./webhooks/webhook-secrets.ts";

/**
 * Interval of the clean-up. It ends deliveries that have waited longer than the retention period. It deletes old
 * deliveries with their attempts, old event ids, and expired responses of idempotent requests.
 */
const cleanUpIntervalMs = 10 * 60 * 1_000;
/** Maximum number of rows per statement, so that a batch holds its locks for milliseconds only. */
const batchSize = 1_000;
/** The stream keeps an event for seven days and can deliver it again until then. */
const eventRetentionDays = 8;

export function startCleanUp(options: {
  sql: Sql;
  secrets: SecretBox;
  /** Retention period of ended deliveries. */
  retentionDays: number;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { sql, retentionDays, logger } = options;
  const deleting = startInterval((signal) => cleanUp(sql, { retentionDays, signal }), {
    intervalMs: cleanUpIntervalMs,
    isExpected: isOutage,
    onFailure: (err) => logger.warn({ err }, "old rows could not be deleted; retrying"),
  });
  const parts = [
    deleting,
    startErasing(options),
    startSecretMaintenance(options),
    startCancellingLeftovers(options),
  ];
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
  if (!signal?.aborted) await deleteOldErasures(sql);
  while (!signal?.aborted && (await deleteExpiredAnswers(sql, batchSize)) === batchSize);
}

/** Deletes ended deliveries. Rechecks `finished_at`, because a concurrent redelivery may have reopened a delivery. */
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

async function deleteOldErasures(sql: Sql): Promise<void> {
  await sql`
    delete from erased_users
    where visited_up_to is null and erased_at < now() - ${eventRetentionDays} * interval '1 day'`;
}
