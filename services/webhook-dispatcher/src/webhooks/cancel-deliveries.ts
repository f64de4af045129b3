import { isOutage, type Sql, type Transaction } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";

/**
 * Calls off what is open for webhooks that are switched off or deleted. An attempt that is under way ends
 * as it ends, and what a person asked for is made even if the webhook is off.
 *
 * A backlog may be large, and whoever makes deliveries of events waits for a webhook's row. So what
 * switches a webhook off cancels one batch in its own transaction, which is all that there mostly is, and
 * as many as a request can wait for in short ones after it. What is left then is found by a look that
 * every replica takes now and then, also when the process dies in between.
 */

/** As many as are cancelled within a fraction of a second. */
export const cancelledAtOnce = 1_000;
/** A request waits for these a second or two. */
export const cancelledInARequest = 10 * cancelledAtOnce;
/** To find what is open may cost as much as all of it, so it is found for many batches at a time. */
const foundAtOnce = 50_000;

/** Cancels up to `atMost` open deliveries, none while the webhook is switched on. */
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

/** Cancels all that is open, unless the webhook is switched on meanwhile. */
export async function cancelAll(
  sql: Sql | Transaction,
  webhookId: string,
  signal?: AbortSignal,
): Promise<void> {
  while (!signal?.aborted && (await cancelSome(sql, webhookId, foundAtOnce, signal)) > 0);
}

async function findOpen(
  sql: Sql | Transaction,
  webhookId: string,
  limit: number,
): Promise<string[]> {
  const found = await sql<{ id: string }[]>`
    select id from deliveries
    where webhook_id = ${webhookId} and status in ('pending', 'retrying')
      and not exists (
        select from webhooks where id = ${webhookId} and (enabled or deliveries.redelivery)
      )
    limit ${limit}`;
  return found.map(({ id }) => id);
}

/** What was claimed in the meantime, or asked for by a person, is left alone. In one order, as any two. */
async function cancelThese(
  sql: Sql | Transaction,
  webhookId: string,
  ids: readonly string[],
): Promise<void> {
  await sql`
    with open as (
      select id from deliveries
      where id = any(${ids as string[]}::uuid[]) and status in ('pending', 'retrying')
        and not exists (
          select from webhooks where id = ${webhookId} and (enabled or deliveries.redelivery)
        )
      order by id
      for update of deliveries
    )
    update deliveries set status = 'cancelled', next_attempt_at = null, finished_at = now(),
      redelivery = false
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
      logger.warn({ err }, "deliveries of webhooks that are off are not cancelled now"),
  });
}

/** The next look takes the next so many webhooks, if there are more. */
const webhooksAtOnce = 100;

export async function cancelLeftovers(sql: Sql, signal?: AbortSignal): Promise<void> {
  const webhooks = await sql<{ id: string }[]>`
    select id from webhooks
    where not enabled and exists (
      select from deliveries
      where webhook_id = webhooks.id and status in ('pending', 'retrying') and not redelivery
    )
    limit ${webhooksAtOnce}`;
  for (const { id } of webhooks) await cancelAll(sql, id, signal);
}
