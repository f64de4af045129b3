import type { EventName } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import { pokeLanes } from "../deliveries/delivery-store.ts";
import type { Webhook } from "../webhooks/webhook.ts";
import { type SecretColumns, secretsOf } from "../webhooks/webhook-store.ts";
import type { Delivering } from "./decide-after-attempt.ts";
import type { ExpiredClaim } from "./expired-claims.ts";
import type { Lane, LaneSearch } from "./plan-claims.ts";

/** A delivery that this process has claimed, with everything that its attempt needs. */
export type ClaimedDelivery = Delivering & {
  id: string;
  event: EventName;
  payload: string;
  /** Time that the delivery has waited for its first attempt; null for later attempts. */
  waitedMs: number | null;
  webhook: Pick<Webhook, "id" | "organizationId" | "url" | "secret" | "previousSecret">;
  /** The id of the claim. Every claim has a new id. */
  claim: string;
  /** The monotonic time just before the claim. */
  claimedAtMs: number;
};

/** A claim whose attempt is in progress or not yet recorded. */
export type HeldClaim = Pick<ClaimedDelivery, "id" | "claim">;

export type ClaimTimes = {
  /**
   * Lifetime of a claim. An attempt that begins in the first half ends before the claim expires: it takes 30 s and the
   * time to record it.
   */
  lastsMs: number;
  /** Interval of the check for expired claims. */
  pollIntervalMs: number;
};

export const defaultClaimTimes: ClaimTimes = { lastsMs: 60_000, pollIntervalMs: 1_000 };
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
 * Claims up to `atMost` due deliveries of each webhook, in the order of their due times. Replicas that claim
 * concurrently claim different deliveries. The limit is one number for all webhooks, so PostgreSQL knows it when it
 * plans the query, and reads only the beginning of each webhook's range in the index.
 */
export const claimStatement = (
  sql: Sql,
  {
    webhookIds,
    atMost,
    claim,
    lastsMs = defaultClaimTimes.lastsMs,
  }: { webhookIds: readonly string[]; atMost: number; claim: string; lastsMs?: number },
) => sql<Row[]>`
  with taken as (
    select due.id, due.next_attempt_at
    from unnest(${webhookIds as string[]}::uuid[]) as planned (webhook_id)
    cross join lateral (
      select id, next_attempt_at
      from deliveries
      where webhook_id = planned.webhook_id and next_attempt_at <= now()
      order by next_attempt_at, id
      limit ${atMost}
      for update skip locked
    ) as due
  ), claimed as (
    update deliveries
    set status = 'delivering', next_attempt_at = null, claimed_by = ${claim},
      claimed_until = now() + ${lastsMs} * interval '1 millisecond'
    where id = any(array(select id from taken))
    returning *
  )
  select claimed.id, claimed.event, claimed.payload, claimed.redelivery,
    claimed.series_attempts as "seriesAttempts", claimed.gone_only as "goneOnly",
    case when claimed.attempts_made = 0
      then (extract(epoch from now() - claimed.created_at) * 1000)::float8 end as "waitedMs",
    webhook.id as "webhookId", webhook.organization_id as "organizationId", webhook.url,
    webhook.secret, webhook.secret_key_id as "secretKeyId",
    webhook.previous_secret as "previousSecret",
    webhook.previous_secret_key_id as "previousSecretKeyId",
    webhook.previous_secret_ends_at as "previousSecretEndsAt"
  from claimed
  join taken on taken.id = claimed.id
  join webhooks as webhook on webhook.id = claimed.webhook_id
  order by taken.next_attempt_at, claimed.id`;

type Row = Omit<ClaimedDelivery, "webhook" | "status" | "claim" | "claimedAtMs"> &
  SecretColumns & { webhookId: string; organizationId: string; url: string };

/** Claims due deliveries and returns them in the order in which they are sent. */
export async function claimDeliveries(
  sql: Sql,
  planned: Parameters<typeof claimStatement>[1] & { claimedAtMs: number },
): Promise<ClaimedDelivery[]> {
  const { claim, claimedAtMs } = planned;
  const rows = await claimStatement(sql, planned);
  return rows.map((row) => {
    const { id, event, payload, redelivery, seriesAttempts, goneOnly, waitedMs } = row;
    const { webhookId, organizationId, url } = row;
    return {
      ...{ id, event, payload, redelivery, seriesAttempts, goneOnly, waitedMs },
      status: "delivering",
      webhook: { id: webhookId, organizationId, url, ...secretsOf(row) },
      claim,
      claimedAtMs,
    };
  });
}

/**
 * Updates the due times of lanes after a claim. One statement locks the rows and another one updates them, so that the
 * update sees all deliveries that were committed before the lock. A transaction that adds a delivery later waits for
 * the lock. Lanes that another transaction has locked stay due, so the next search finds them again.
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
    order by next_attempt_at, id
    limit 1
  )
  where webhook_id = any(${webhookIds}::uuid[])`;

/** Ends a claim. The next check for expired claims makes the delivery due again. */
export async function releaseClaim(sql: Sql, { id, claim }: HeldClaim): Promise<void> {
  await sql`
    update deliveries set claimed_by = null, claimed_until = now() - interval '1 microsecond'
    where id = ${id} and claimed_by = ${claim}`;
}

/** Extends expired claims that their process still holds. */
export const renewClaims = (sql: Sql, held: readonly HeldClaim[], lastsMs: number) => sql`
  update deliveries set claimed_until = now() + ${lastsMs} * interval '1 millisecond'
  where id = any(array(
    select id
    from deliveries
    where claimed_until < now()
      and (id, claimed_by) in (
        select *
        from unnest(${held.map(({ id }) => id)}::uuid[], ${held.map(({ claim }) => claim)}::uuid[])
      )
    for update skip locked
  ))`;

/**
 * Releases expired claims, makes their deliveries due again, and returns the number of deliveries. The attempt may have
 * been made already, so the target may receive it twice. If the webhook was disabled meanwhile, the delivery is
 * cancelled, unless it is a redelivery.
 */
export async function releaseExpiredClaims(
  sql: Sql,
  expired: readonly ExpiredClaim[],
): Promise<number> {
  return sql.begin(async (tx) => {
    const webhooks = await tx<{ id: string; enabled: boolean }[]>`
      select id, enabled
      from webhooks
      where id = any(${expired.map(({ webhookId }) => webhookId)}::uuid[])
      order by id
      for share`;
    const enabled = webhooks.filter((webhook) => webhook.enabled).map(({ id }) => id);
    const existing = webhooks.map(({ id }) => id);
    const freed = await tx<{ webhookId: string; dueAt: Date | null }[]>`
      update deliveries
      set (status, next_attempt_at, finished_at, claimed_by, claimed_until) = (
        select
          case when not wanted then 'cancelled'
            when redelivery or attempts_made = 0 then 'pending' else 'retrying' end,
          case when wanted then now() end,
          case when not wanted then now() end,
          null::uuid, null::timestamptz
        from (select webhook_id = any(${enabled}::uuid[])
          or redelivery and webhook_id = any(${existing}::uuid[])) as of (wanted)
      )
      where id = any(array(
        select id
        from deliveries
        where id = any(${expired.map(({ id }) => id)}::uuid[]) and claimed_until < now()
        for update skip locked
      ))
      returning webhook_id as "webhookId", next_attempt_at as "dueAt"`;
    const [dueAt] = freed.flatMap((delivery) => delivery.dueAt ?? []);
    if (dueAt !== undefined) await pokeLanes(tx, existing, dueAt);
    return freed.length;
  });
}

export const expiredClaims = (sql: Sql, limit: number) => sql<ExpiredClaim[]>`
  select id, webhook_id as "webhookId", claimed_by as claim
  from deliveries
  where claimed_until < now()
  order by claimed_until
  limit ${limit}`;
