import { fragment, isOutage, type Sql, type Transaction } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";

/**
 * Cancels the open deliveries of webhooks that are disabled or deleted, including those whose claim has expired. An
 * attempt in progress is not interrupted, and redeliveries are made even if the webhook is disabled.
 *
 * A backlog may be large, and the consumer of events waits for the lock on the webhook's row. Therefore the transaction
 * that disables a webhook cancels one batch, which is usually everything. The request cancels a limited number of
 * further batches in short transactions. A periodic task of every replica cancels the rest, even if the process fails
 * in between.
 */

/** Maximum number of deliveries per transaction. They are cancelled in a fraction of a second. */
export const cancelledAtOnce = 1_000;
/** Maximum number of deliveries that a request cancels. They take a second or two. */
export const cancelledInARequest = 10 * cancelledAtOnce;
/** Maximum number of deliveries per search. A search may scan the whole backlog, so it serves many batches. */
const foundAtOnce = 50_000;

/** Cancels up to `atMost` open deliveries of a disabled or deleted webhook. Returns the number that it found. */
export async function cancelSome(
  sql: Sql | Transaction,
  webhookId: string,
  atMost: number,
  signal?: AbortSignal,
): Promise<number> {
  const found = await findOpen(sql, webhookId, atMost);
  for (let from = 0; from < found.length && !signal?.aborted; from += cancelledAtOnce)
    await cancelThese(sql, webhookId, found.slice(from, from + cancelledAtOnce));
  return found.length;
}

/** Cancels all open deliveries, unless the webhook is enabled meanwhile. */
export async function cancelAll(
  sql: Sql | Transaction,
  webhookId: string,
  signal?: AbortSignal,
): Promise<void> {
  while (!signal?.aborted && (await cancelSome(sql, webhookId, foundAtOnce, signal)) > 0);
}

/** The condition for cancelling an open delivery: no attempt is in progress, and none may begin. */
const mayBeCancelled = (webhookId: string) => fragment`
  next_attempt_at is not null and (status <> 'delivering' or next_attempt_at <= now())
  and not exists (
    select from webhooks where id = ${webhookId} and (enabled or deliveries.redelivery)
  )`;

async function findOpen(
  sql: Sql | Transaction,
  webhookId: string,
  limit: number,
): Promise<string[]> {
  const found = await sql<{ id: string }[]>`
    select id from deliveries
    where webhook_id = ${webhookId} and ${mayBeCancelled(webhookId)}
    limit ${limit}`;
  return found.map(({ id }) => id);
}

/** Cancels those of these deliveries that still may be. Locks rows by id to avoid deadlocks. */
async function cancelThese(
  sql: Sql | Transaction,
  webhookId: string,
  ids: readonly string[],
): Promise<void> {
  await sql`
    with open as (
      select id from deliveries
      where id = any(${ids as string[]}::uuid[]) and ${mayBeCancelled(webhookId)}
      order by id
      for update of deliveries
    )
    update deliveries set status = 'cancelled', next_attempt_at = null, finished_at = now(),
      redelivery = false, claimed_by = null
    from open where deliveries.id = open.id`;
}

/**
 * Cancels all open deliveries of a webhook. Call it before the webhook is deleted, because the deletion locks the lane.
 * An attempt in progress keeps its claim, so that its result is recorded.
 */
export const cancelBeforeDeletion = (tx: Transaction, webhookId: string) => tx`
  with open as (
    select id from deliveries
    where webhook_id = ${webhookId} and next_attempt_at is not null
    order by id
    for update
  )
  update deliveries set status = 'cancelled', next_attempt_at = null, finished_at = now(),
    redelivery = false
  from open where deliveries.id = open.id`;

const pollIntervalMs = 30_000;

export function startCancellingLeftovers(options: { sql: Sql; logger: Logger }): {
  stop(): Promise<void>;
} {
  const { sql, logger } = options;
  return startInterval((signal) => cancelLeftovers(sql, signal), {
    intervalMs: pollIntervalMs,
    isExpected: isOutage,
    onFailure: (err) =>
      logger.warn({ err }, "deliveries of disabled webhooks could not be cancelled; retrying"),
  });
}

/** Maximum number of webhooks per run. Later runs find the others. */
const webhooksAtOnce = 100;

export async function cancelLeftovers(sql: Sql, signal?: AbortSignal): Promise<void> {
  const webhooks = await sql<{ id: string }[]>`
    select id from webhooks
    where not enabled and exists (
      select from deliveries
      where webhook_id = webhooks.id and next_attempt_at is not null and not redelivery
        and (status <> 'delivering' or next_attempt_at <= now())
    )
    limit ${webhooksAtOnce}`;
  for (const { id } of webhooks) await cancelAll(sql, id, signal);
}
