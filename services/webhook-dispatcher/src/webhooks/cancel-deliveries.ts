import { fragment, isOutage, type Sql, type Transaction } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";

/**
 * Cancels the open deliveries of webhooks that are disabled or deleted, including those whose claim has expired. An
 * attempt in progress is not interrupted, and its result is recorded. Redeliveries are made even if the webhook is
 * disabled.
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

/**
 * The condition for cancelling an open delivery. If the webhook is disabled, no attempt is in progress, and none may
 * begin. If it is deleted, its lane is gone, so that an attempt in progress is not found after its claim expires.
 */
const mayBeCancelled = (webhookId: string) => fragment`
  next_attempt_at is not null and case (select enabled from webhooks where id = ${webhookId})
    when true then false
    when false then not redelivery and (status <> 'delivering' or next_attempt_at <= now())
    else true
  end`;

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

/**
 * Cancels those of these deliveries that still may be. Locks rows by id to avoid deadlocks. A valid claim stays, so that
 * the result of its attempt is recorded.
 */
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
      redelivery = false,
      claimed_by = case
        when deliveries.status = 'delivering' and deliveries.next_attempt_at > now() then claimed_by
      end
    from open where deliveries.id = open.id`;
}

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

/** Maximum number of disabled webhooks, and of deleted ones, per run. Later runs find the others. */
const webhooksAtOnce = 100;

export async function cancelLeftovers(sql: Sql, signal?: AbortSignal): Promise<void> {
  const webhooks = [...(await findDisabled(sql)), ...(await findDeleted(sql))];
  for (const { id } of webhooks) await cancelAll(sql, id, signal);
}

const findDisabled = (sql: Sql) => sql<{ id: string }[]>`
  select id from webhooks
  where not enabled and exists (
    select from deliveries
    where webhook_id = webhooks.id and next_attempt_at is not null and not redelivery
      and (status <> 'delivering' or next_attempt_at <= now())
  )
  limit ${webhooksAtOnce}`;

/**
 * Finds deleted webhooks with open deliveries. It finds each webhook with open deliveries from the previous one, so that
 * a large backlog costs one row.
 */
export const findDeleted = (sql: Sql) => sql<{ id: string }[]>`
  with recursive open (webhook_id) as (
    (
      select webhook_id from deliveries
      where next_attempt_at is not null
      order by webhook_id
      limit 1
    )
    union all
    select next.webhook_id
    from open
    cross join lateral (
      select webhook_id from deliveries
      where next_attempt_at is not null and webhook_id > open.webhook_id
      order by webhook_id
      limit 1
    ) as next
  )
  select webhook_id as id from open
  where not exists (select from webhooks where id = open.webhook_id)
  limit ${webhooksAtOnce}`;
