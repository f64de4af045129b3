import type { Sql, Transaction } from "@halyard/postgres";
import { v7 as uuidv7 } from "uuid";
import { type Attempt, maxStoredAttempts } from "../deliveries/delivery.ts";
import { pokeLanes } from "../deliveries/delivery-store.ts";
import { disableWebhook } from "../webhooks/webhook-store.ts";
import type { ClaimedDelivery } from "./claim-store.ts";
import {
  type AfterAttempt,
  decideWhetherToRetry,
  saysGone,
  saysGoneForGood,
} from "./decide-after-attempt.ts";

/** An attempt that was made, and what it leads to unless the webhook was switched off meanwhile. */
export type MadeAttempt = {
  delivery: ClaimedDelivery;
  attempt: Attempt;
  next: AfterAttempt;
  /** It took long. */
  slow: boolean;
};

export type Recorded = { status: "delivered" | "retrying" | "failed" | "cancelled" | "claim lost" };

/**
 * Keeps an attempt, and moves its delivery on; all at once, so that there is no retry without the
 * attempt before it. If the claim was lost, because this process stood still until it had run out,
 * the attempt is kept all the same, and the delivery is the other one's to move.
 */
export async function recordAttempt(sql: Sql, made: MadeAttempt): Promise<Recorded> {
  if (made.next.status === "delivered" && (await recordDelivered(sql, made)))
    return { status: "delivered" };
  return sql.begin(async (tx) => {
    const { webhook } = made.delivery;
    const { next, mayBeGone } = await lockWebhookFor(tx, made);
    const moved = await moveDelivery(tx, made, next);
    const isKept = await keepAttempt(tx, made);
    if (moved === undefined) return isKept ? await countLate(tx, made) : { status: next.status };
    if (mayBeGone && moved.goneOnly)
      await disableWebhook(tx, webhook.id, {
        author: "webhook-dispatcher",
        newId: uuidv7,
        now: made.attempt.attemptedAt,
      });
    await tx`
      update lanes set slow = ${made.slow}
      where webhook_id = ${webhook.id} and slow <> ${made.slow}`;
    if (moved.attemptsMade > maxStoredAttempts) await forgetOldest(tx, made.delivery);
    if (moved.dueAt !== null) await pokeLanes(tx, [webhook.id], moved.dueAt);
    return { status: next.status };
  });
}

/**
 * Records a successful attempt in one statement instead of a transaction of several, because recording is most of the
 * cost of a delivery. Returns false and writes nothing if the claim was lost or if old attempts must be deleted.
 */
async function recordDelivered(
  sql: Sql,
  { delivery, attempt, next, slow }: MadeAttempt,
): Promise<boolean> {
  const recorded = await sql`
    with moved as (
      update deliveries
      set status = 'delivered',
        attempts_made = attempts_made + 1,
        series_attempts = series_attempts + case when redelivery then 0 else 1 end,
        redelivery = false,
        gone_only = ${next.goneOnly},
        delivered_at = now(),
        finished_at = now(),
        claimed_by = null,
        claimed_until = null
      where id = ${delivery.id} and status = 'delivering' and claimed_by = ${delivery.claim}
        and attempts_made < ${maxStoredAttempts}
      returning id
    ), lane as (
      update lanes set slow = ${slow}
      where webhook_id = ${delivery.webhook.id} and slow <> ${slow} and exists (select from moved)
    )
    insert into attempts (id, delivery_id, attempted_at, status_code, duration_ms, error,
      response_body)
    select ${attempt.id}::uuid, id, ${attempt.attemptedAt}, ${attempt.statusCode}::integer,
      ${attempt.durationMs}::integer, ${attempt.error}, ${attempt.responseBody}
    from moved`;
  return recorded.count > 0;
}

type Next = AfterAttempt | ReturnType<typeof decideWhetherToRetry>;

/**
 * Where the webhook matters it is locked before the delivery, as everybody does it. Most attempts
 * succeed, and then nobody has to wait for anybody.
 *
 * The webhook may be gone for good if it is still on, and still goes to where the attempt went: a person
 * may have corrected it meanwhile.
 */
async function lockWebhookFor(
  tx: Transaction,
  { delivery, next }: MadeAttempt,
): Promise<{ next: Next; mayBeGone: boolean }> {
  if (saysGoneForGood(next)) {
    const same = await tx`
      select from webhooks
      where id = ${delivery.webhook.id} and enabled and url = ${delivery.webhook.url}
      for update`;
    return { next, mayBeGone: same.count > 0 };
  }
  if (next.status !== "retrying") return { next, mayBeGone: false };
  const [webhook] = await tx<{ enabled: boolean }[]>`
    select enabled from webhooks where id = ${delivery.webhook.id} for share`;
  return { next: decideWhetherToRetry(next, webhook), mayBeGone: false };
}

type Moved = { dueAt: Date | null; goneOnly: boolean; attemptsMade: number };

/** Undefined when the claim was lost. */
async function moveDelivery(
  tx: Transaction,
  { delivery }: MadeAttempt,
  next: Next,
): Promise<Moved | undefined> {
  const afterMs = next.status === "retrying" ? next.afterMs : null;
  const [moved] = await tx<Moved[]>`
    update deliveries
    set status = ${next.status},
      attempts_made = attempts_made + 1,
      series_attempts = series_attempts + case when redelivery then 0 else 1 end,
      redelivery = false,
      gone_only = gone_only and ${next.goneOnly},
      next_attempt_at = now() + ${afterMs}::float8 * interval '1 millisecond',
      delivered_at = case when ${next.status} = 'delivered' then now() else delivered_at end,
      finished_at = case when ${next.status} = 'retrying' then null else now() end,
      claimed_by = null,
      claimed_until = null
    where id = ${delivery.id} and status = 'delivering' and claimed_by = ${delivery.claim}
    returning next_attempt_at as "dueAt", gone_only as "goneOnly",
      attempts_made as "attemptsMade"`;
  return moved;
}

/** The attempt is one more of the delivery, which is another's to move; what it has told counts. */
async function countLate(tx: Transaction, { delivery, attempt }: MadeAttempt): Promise<Recorded> {
  await tx`
    update deliveries
    set attempts_made = attempts_made + 1, gone_only = gone_only and ${saysGone(attempt)}
    where id = ${delivery.id}`;
  return { status: "claim lost" };
}

/**
 * False when there was nothing to keep. All of this may have been recorded before, if the connection
 * was lost after the commit and before its answer. Or the delivery may have been cleaned up, if the
 * process stood still for as long as that takes.
 */
async function keepAttempt(tx: Transaction, { delivery, attempt }: MadeAttempt): Promise<boolean> {
  const kept = await tx`
    insert into attempts (id, delivery_id, attempted_at, status_code, duration_ms, error,
      response_body)
    select ${attempt.id}::uuid, id, ${attempt.attemptedAt}, ${attempt.statusCode}::integer,
      ${attempt.durationMs}::integer, ${attempt.error}, ${attempt.responseBody}
    from deliveries
    where id = ${delivery.id}
    on conflict (id) do nothing`;
  return kept.count > 0;
}

/** The claim of this delivery is ours, so nobody else records or forgets one at the same time. */
async function forgetOldest(tx: Transaction, delivery: ClaimedDelivery): Promise<void> {
  await tx`
    delete from attempts
    where id = any(array(
      select id from attempts
      where delivery_id = ${delivery.id}
      order by id desc
      offset ${maxStoredAttempts}
    ))`;
}
