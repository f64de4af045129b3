import type { DeliveryStatus } from "@halyard/contracts";
import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import {
  type Attempt,
  type Delivery,
  type DeliveryWithAttempts,
  maxStoredAttempts,
} from "./delivery.ts";

/** Deliveries in PostgreSQL, as people read them and ask for another attempt. */
type Scope = { webhookId: string; deliveryId: string };

/** The newest first, older than `beforeId`. */
export async function listDeliveries(
  sql: Sql,
  query: {
    webhookId: string;
    status: DeliveryStatus | undefined;
    beforeId: string | undefined;
    limit: number;
  },
): Promise<Delivery[]> {
  const { status, beforeId } = query;
  return sql<Delivery[]>`
    select ${columns} from deliveries
    where webhook_id = ${query.webhookId}
      ${status === undefined ? fragment`` : fragment`and status = ${status}`}
      ${beforeId === undefined ? fragment`` : fragment`and id < ${beforeId}`}
    order by id desc
    limit ${query.limit}`;
}

export async function findDelivery(
  sql: Sql,
  scope: Scope,
): Promise<DeliveryWithAttempts | undefined> {
  const [delivery] = await sql<DeliveryWithAttempts[]>`
    select ${columns}, payload, coalesce((
      select jsonb_agg(jsonb_build_object('id', attempt.id, 'attemptedAt', attempted_at,
        'statusCode', status_code, 'durationMs', duration_ms, 'error', error,
        'responseBody', response_body) order by attempt.id)
      from (
        select * from attempts
        where delivery_id = deliveries.id
        order by id desc
        limit ${maxStoredAttempts}
      ) as attempt
    ), '[]') as attempts
    from deliveries
    where id = ${scope.deliveryId} and webhook_id = ${scope.webhookId}`;
  return delivery && { ...delivery, attempts: delivery.attempts.map(revived) };
}

/** Instants inside of JSON have come as text. */
function revived(attempt: Attempt): Attempt {
  return { ...attempt, attemptedAt: new Date(attempt.attemptedAt) };
}

/**
 * Has one more attempt made now. What waits for its time is brought forward, and its retries stay as
 * they are; what has ended gets one attempt, without retries. An attempt that is just being made is the
 * one asked for, so nobody ever makes two at once. Two who ask at once get one attempt as well.
 *
 * The webhook's row is held meanwhile, so that nothing waits for a webhook that is just being deleted;
 * that it is switched off does not matter, because a person asks. What still waits then is just being
 * cancelled, so it gets one attempt as what has ended does, which cancelling leaves alone.
 */
export async function redeliver(
  sql: Sql,
  scope: Scope & { projectId: string },
): Promise<Delivery | undefined> {
  return sql.begin(async (tx) => {
    const [webhook] = await tx<{ enabled: boolean }[]>`
      select enabled from webhooks
      where id = ${scope.webhookId} and project_id = ${scope.projectId}
      for share`;
    if (webhook === undefined) return undefined;
    const [waiting] = await tx<Delivery[]>`
      update deliveries
      set status = 'pending', next_attempt_at = least(next_attempt_at, now()), finished_at = null,
        redelivery = redelivery or status in ('delivered', 'failed', 'cancelled')
          or ${!webhook.enabled}
      where id = ${scope.deliveryId} and webhook_id = ${scope.webhookId} and status <> 'delivering'
      returning ${columns}`;
    if (waiting?.nextAttemptAt) {
      await pokeLanes(tx, [scope.webhookId], waiting.nextAttemptAt);
      return waiting;
    }
    const [underWay] = await tx<Delivery[]>`
      select ${columns} from deliveries
      where id = ${scope.deliveryId} and webhook_id = ${scope.webhookId}`;
    return underWay;
  }) as Promise<Delivery | undefined>;
}

const columns = fragment`
  id, webhook_id as "webhookId", organization_id as "organizationId", project_id as "projectId",
  event_id as "eventId", event, status, attempts_made as "attemptsMade", created_at as "createdAt",
  next_attempt_at as "nextAttemptAt", delivered_at as "deliveredAt"`;

/**
 * Says that webhooks have something to be done at a time, if nothing is due there earlier. This goes
 * last in a transaction: the row is locked until its end, so whoever is just working out when the
 * webhook is due next either sees these deliveries or is waited for. Webhooks in the order of their ids,
 * so that two transactions never wait for each other.
 */
export async function pokeLanes(
  tx: Transaction,
  webhookIds: readonly string[],
  dueAt: Date,
): Promise<void> {
  await tx`
    with poked as (
      select webhook_id from lanes where webhook_id = any(${[...webhookIds]}::uuid[])
      order by webhook_id
      for update
    )
    update lanes set due_at = least(coalesce(due_at, ${dueAt}), ${dueAt})
    from poked where lanes.webhook_id = poked.webhook_id`;
}

/**
 * Gives up what has waited for longer than deliveries are kept, which only a target that hangs leaves
 * so: what comes for it may be more than it ever takes. So its backlog is bounded by time, and what has
 * failed is cleaned up later as everything that has ended. What a person has asked for waits as long from
 * then on; what is being sent is looked at when it waits again.
 *
 * Ids are in the order of creation. All that are older than the bound have mostly been cleaned up, so
 * reading them by their ids costs little beside the backlog itself.
 */
export async function giveUpOldDeliveries(
  sql: Sql,
  { retentionDays, atMost }: { retentionDays: number; atMost: number },
): Promise<number> {
  const givenUp = await sql`
    with bound as (
      select now() - ${retentionDays} * interval '1 day' as oldest
    ), old as (
      select id from deliveries, bound
      where id < (
          select (lpad(to_hex(floor(extract(epoch from oldest) * 1000)::bigint), 12, '0')
            || repeat('0', 20))::uuid
          from bound
        )
        and status in ('pending', 'retrying')
        and (not redelivery or next_attempt_at < oldest)
      order by id
      limit ${atMost}
      for update of deliveries skip locked
    )
    update deliveries set status = 'failed', next_attempt_at = null, finished_at = now(),
      redelivery = false
    from old where deliveries.id = old.id`;
  return givenUp.count;
}
