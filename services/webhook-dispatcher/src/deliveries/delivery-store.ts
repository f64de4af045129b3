import type { DeliveryStatus } from "@halyard/contracts";
import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import {
  type Attempt,
  type Delivery,
  type DeliveryWithAttempts,
  maxStoredAttempts,
} from "./delivery.ts";

type Scope = { webhookId: string; deliveryId: string };

/** Returns the deliveries older than `beforeId`, the newest first. */
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

/** Converts the timestamp, which is a string in JSON. */
function revived(attempt: Attempt): Attempt {
  return { ...attempt, attemptedAt: new Date(attempt.attemptedAt) };
}

/**
 * Requests one more attempt now. An open delivery becomes due now and keeps its retries. An ended delivery gets one
 * attempt without retries. If an attempt is in progress, it is the requested one, so a delivery never has two attempts
 * at the same time. Two concurrent requests cause one attempt.
 *
 * The webhook's row is locked, so that no delivery waits for a webhook that is being deleted. A disabled webhook
 * accepts redeliveries. Its open deliveries are about to be cancelled, so this one is marked as a redelivery, which
 * prevents that.
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

/**
 * Characters of a payload that contain its first members: the event, its time, and the flag and the environment, the
 * audience, or the change request. Their order is that of `payloadOf`. The rest can have 64 KiB of rules, and a page of 1,000 deliveries would read all of it.
 */
const headLength = 4_096;

/** In the text of a name, quotes are escaped. Only a member of the payload therefore matches. */
const flagKey = String.raw`"flag":\{"id":"[^"]*","key":"([^"]*)"`;
const audienceKey = String.raw`"audience":\{"key":"([^"]*)"`;
const changeRequestId = String.raw`"change_request":\{"id":"([^"]*)"`;
const environmentId = String.raw`"environment":\{"id":"([^"]*)"`;

const columns = fragment`
  id, webhook_id as "webhookId", organization_id as "organizationId", project_id as "projectId",
  event_id as "eventId", event, status, attempts_made as "attemptsMade", created_at as "createdAt",
  substring(left(payload, ${headLength}) from ${flagKey}) as "flagKey",
  substring(left(payload, ${headLength}) from ${environmentId}) as "environmentId",
  case when event = 'audience.updated' then
    substring(left(payload, ${headLength}) from ${audienceKey})
  end as "audienceKey",
  case when starts_with(event, 'change_request.') then
    substring(left(payload, ${headLength}) from ${changeRequestId})
  end as "changeRequestId",
  (select status_code from attempts where delivery_id = deliveries.id order by attempts.id desc limit 1)
    as "lastStatusCode",
  case when status <> 'delivering' then next_attempt_at end as "nextAttemptAt",
  delivered_at as "deliveredAt"`;

/**
 * Brings the due time of lanes forward to `dueAt`, unless they are due earlier. Call it last in a transaction, because
 * the rows are locked until the commit. A concurrent update of the due time either sees these deliveries, or finishes
 * before this statement continues. The rows are locked in the order of their ids, so that two transactions cannot
 * deadlock.
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
 * Fails deliveries that have waited longer than the retention period. Only a hanging target causes them, because it may
 * receive more events than it accepts. This bounds its backlog by time. The clean-up deletes the failed deliveries
 * later. For a redelivery, the period begins with the request. Deliveries with an attempt in progress are skipped until
 * they wait again.
 *
 * Ids have the order of creation. Most deliveries with older ids have been deleted, so a scan by id costs little more
 * than the backlog.
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
