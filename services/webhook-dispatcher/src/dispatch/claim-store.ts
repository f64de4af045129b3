import type { EventName } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import { pokeLanes } from "../deliveries/delivery-store.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import { type SecretColumns, secretsOf } from "../webhooks/webhook-store.ts";
import type { Delivering } from "./decide-after-attempt.ts";
import type { Lane, LaneSearch } from "./plan-claims.ts";

/** A delivery that this process has claimed, with everything that its attempt needs. */
export type ClaimedDelivery = Delivering & {
  id: string;
  event: EventName;
  payload: string;
  /** Time that the delivery has waited for its first attempt; null for later attempts. */
  waitedMs: number | null;
  /** Context of the span that received the event; null without traces. */
  traceparent: string | null;
  tracestate: string | null;
  /** Number of attempts before this one. */
  attemptsMade: number;
  webhook: Pick<
    Webhook,
    "id" | "organizationId" | "projectId" | "url" | "secret" | "previousSecret" | "traceContext"
  >;
  /** The id of the claim. Every claim has a new id, so the result of a lost claim does not overwrite a later one. */
  claim: string;
  /** The monotonic time just before the claim. */
  claimedAtMs: number;
};

/**
 * Time after which a claimed delivery is due again, unless its attempt was recorded. A process that has failed, is
 * suspended or cannot record therefore leaves its deliveries to the others. An attempt ends within 55 s: it begins
 * within `latestStartMs` and takes 30 s. The rest is for recording it.
 */
export const defaultClaimTimeoutMs = 70_000;
/**
 * Maximum time from claiming to sending. A process that was suspended for longer does not send the delivery, because
 * another process may claim it.
 */
export const latestStartMs = 25_000;

/**
 * The statements that find, claim and release due deliveries.
 *
 * Transactions take locks in one order: webhooks, deliveries, lanes. A lane contains the time at which its webhook is
 * due next. A transaction writes the lane last, so that the row is locked for a short time.
 */

/** Finds the lanes that are due now or within `aheadMs`, in the order of their due times. */
export const findLanes = (sql: Sql, search: LaneSearch, aheadMs: number) => sql<Lane[]>`
  select webhook_id as "webhookId", organization_id as "organizationId", slow,
    (extract(epoch from due_at - now()) * 1000)::float8 as "dueInMs"
  from lanes
  where slow = ${search.slow} and due_at <= now() + ${aheadMs} * interval '1 millisecond'
    and webhook_id <> all(${search.exceptWebhooks}::uuid[])
    and organization_id <> all(${search.exceptOrganizations}::uuid[])
  order by due_at
  limit ${search.limit}`;

/**
 * Claims up to `atMost` due deliveries of each webhook, in the order of their due times. A delivery whose claim has
 * expired is due too. Only redeliveries of a disabled webhook are claimed. Replicas that claim concurrently claim
 * different deliveries. The limit is one number for all webhooks, so PostgreSQL knows it when it plans the query, and
 * reads only the beginning of each webhook's range in the index.
 */
export const claimStatement = (
  sql: Sql,
  {
    webhookIds,
    atMost,
    claim,
    timeoutMs = defaultClaimTimeoutMs,
  }: { webhookIds: readonly string[]; atMost: number; claim: string; timeoutMs?: number },
) => sql<Row[]>`
  with taken as (
    select due.id, due.next_attempt_at
    from unnest(${webhookIds as string[]}::uuid[]) as planned (webhook_id)
    cross join lateral (
      select id, next_attempt_at
      from deliveries
      where webhook_id = planned.webhook_id and next_attempt_at <= now()
        and (redelivery or (select enabled from webhooks where id = planned.webhook_id))
      order by next_attempt_at, id
      limit ${atMost}
      for update skip locked
    ) as due
  ), claimed as (
    update deliveries
    set status = 'delivering', claimed_by = ${claim},
      next_attempt_at = now() + ${timeoutMs} * interval '1 millisecond'
    where id = any(array(select id from taken))
    returning *
  )
  select claimed.id, claimed.event, claimed.payload, claimed.redelivery, claimed.traceparent,
    claimed.tracestate, claimed.attempts_made as "attemptsMade",
    claimed.series_attempts as "seriesAttempts", claimed.gone_only as "goneOnly",
    case when claimed.attempts_made = 0
      then (extract(epoch from now() - claimed.created_at) * 1000)::float8 end as "waitedMs",
    webhook.id as "webhookId", webhook.organization_id as "organizationId",
    webhook.project_id as "projectId", webhook.url, webhook.trace_context as "traceContext",
    webhook.secret, webhook.secret_key_id as "secretKeyId",
    webhook.previous_secret as "previousSecret",
    webhook.previous_secret_key_id as "previousSecretKeyId",
    webhook.previous_secret_ends_at as "previousSecretEndsAt"
  from claimed
  join taken on taken.id = claimed.id
  join webhooks as webhook on webhook.id = claimed.webhook_id
  order by taken.next_attempt_at, claimed.id`;

type Row = Omit<ClaimedDelivery, "webhook" | "status" | "claim" | "claimedAtMs"> &
  SecretColumns & { webhookId: string } & Pick<
    Webhook,
    "organizationId" | "projectId" | "url" | "traceContext"
  >;

/** Claims due deliveries and returns them in the order in which they are sent. */
export async function claimDeliveries(
  sql: Sql,
  planned: Parameters<typeof claimStatement>[1] & { claimedAtMs: number },
): Promise<ClaimedDelivery[]> {
  const { claim, claimedAtMs } = planned;
  const rows = await claimStatement(sql, planned);
  return rows.map((row) => {
    const { id, event, payload, redelivery, seriesAttempts, goneOnly, waitedMs } = row;
    const { webhookId, organizationId, projectId, url, traceContext } = row;
    const { traceparent, tracestate, attemptsMade } = row;
    return {
      ...{ id, event, payload, redelivery, seriesAttempts, goneOnly, waitedMs },
      ...{ traceparent, tracestate, attemptsMade },
      status: "delivering",
      webhook: { id: webhookId, organizationId, projectId, url, traceContext, ...secretsOf(row) },
      claim,
      claimedAtMs,
    };
  });
}

/**
 * Updates the due times of lanes after a claim. One statement locks the rows and another one updates them, so that the
 * update sees all deliveries that were committed before the lock. A transaction that adds a delivery later waits for
 * the lock. Lanes that another transaction has locked stay due, so the next search finds them again.
 *
 * The deliveries of a disabled webhook do not count, except redeliveries. Otherwise their lane would be found again until
 * they are cancelled. Enabling the webhook makes the lane due.
 */
export async function settleLanes(sql: Sql, webhookIds: readonly string[]): Promise<void> {
  await sql.begin(async (tx) => {
    const locked = await tx<{ id: string }[]>`
      select webhook_id as id
      from lanes
      where webhook_id = any(${webhookIds as string[]}::uuid[])
      for update skip locked`;
    await settleStatement(
      tx,
      locked.map(({ id }) => id),
    );
  });
}

export const settleStatement = (sql: Sql | Transaction, webhookIds: string[]) => sql`
  update lanes
  set due_at = (
    select next_attempt_at
    from deliveries
    where webhook_id = lanes.webhook_id and next_attempt_at is not null
      and (redelivery or (select enabled from webhooks where id = lanes.webhook_id))
    order by next_attempt_at, id
    limit 1
  )
  where webhook_id = any(${webhookIds}::uuid[])`;

/** Makes a claimed delivery due immediately. The attempt may have been made, so the target may receive it twice. */
export async function endClaim(sql: Sql, { id, claim }: ClaimedDelivery): Promise<void> {
  await sql.begin(async (tx) => {
    const [ended] = await tx<{ webhookId: string; dueAt: Date }[]>`
      update deliveries set next_attempt_at = now()
      where id = ${id} and status = 'delivering' and claimed_by = ${claim}
      returning webhook_id as "webhookId", next_attempt_at as "dueAt"`;
    if (ended !== undefined) await pokeLanes(tx, [ended.webhookId], ended.dueAt);
  });
}

/** Ends a claim without an attempt, and makes the delivery due later. */
export async function postpone(
  sql: Sql,
  { id, claim }: ClaimedDelivery,
  byMs: number,
): Promise<void> {
  await sql`
    update deliveries
    set status = case attempts_made when 0 then 'pending' else 'retrying' end, claimed_by = null,
      next_attempt_at = now() + ${byMs} * interval '1 millisecond'
    where id = ${id} and claimed_by = ${claim}`;
}
