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

/** A finished attempt. `next` is the new state of the delivery, unless the webhook was disabled meanwhile. */
export type MadeAttempt = {
  delivery: ClaimedDelivery;
  attempt: Attempt;
  next: AfterAttempt;
  /** The attempt timed out or took longer than five seconds. */
  slow: boolean;
};

export type Recorded = { status: "delivered" | "retrying" | "failed" | "cancelled" | "claim lost" };

/**
 * Stores an attempt and updates its delivery in one transaction, so that there is no retry without the attempt before
 * it. If another process has claimed the delivery after a time-out, only the attempt is stored. The process with the new
 * claim updates the delivery.
 */
export async function recordAttempt(sql: Sql, made: MadeAttempt): Promise<Recorded> {
  if (made.next.status === "delivered" && (await recordDelivered(sql, made)))
    return { status: "delivered" };
  return sql.begin(async (tx) => {
    const { webhook } = made.delivery;
    const { next, mayBeGone } = await lockWebhookFor(tx, made);
    const moved = await moveDelivery(tx, made, next);
    const isStored = await storeAttempt(tx, made);
    if (moved === undefined) return isStored ? await countLate(tx, made) : { status: next.status };
    if (mayBeGone && moved.goneOnly)
      await disableWebhook(tx, webhook.id, {
        author: "webhook-dispatcher",
        newId: uuidv7,
        now: made.attempt.attemptedAt,
      });
    await tx`
      update lanes set slow = ${made.slow}
      where webhook_id = ${webhook.id} and slow <> ${made.slow}`;
    if (moved.attemptsMade > maxStoredAttempts) await deleteOldest(tx, made.delivery);
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
        next_attempt_at = null,
        delivered_at = now(),
        finished_at = now(),
        claimed_by = null
      where id = ${delivery.id} and claimed_by = ${delivery.claim}
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
 * Locks the webhook if its state decides what happens to the delivery. All transactions lock the webhook before the
 * delivery. Successful attempts need no lock.
 *
 * `mayBeGone` is true if the webhook is still enabled and still has the URL of the attempt. Otherwise a user may have
 * corrected it meanwhile, and it must not be disabled.
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

/** Updates the delivery. Returns undefined if the claim was lost. */
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
      claimed_by = null
    where id = ${delivery.id} and claimed_by = ${delivery.claim}
    returning next_attempt_at as "dueAt", gone_only as "goneOnly",
      attempts_made as "attemptsMade"`;
  return moved;
}

/** Counts an attempt whose claim was lost, and records if it was not a 410. The new claim's process does the rest. */
async function countLate(tx: Transaction, { delivery, attempt }: MadeAttempt): Promise<Recorded> {
  await tx`
    update deliveries
    set attempts_made = attempts_made + 1, gone_only = gone_only and ${saysGone(attempt)}
    where id = ${delivery.id}`;
  return { status: "claim lost" };
}

/**
 * Stores the attempt. Returns false if there was no row to insert: the attempt was committed before and only the
 * response was lost, or the delivery was deleted while the process was suspended.
 */
async function storeAttempt(tx: Transaction, { delivery, attempt }: MadeAttempt): Promise<boolean> {
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

/** Deletes the oldest attempts. This process holds the claim, so no other process writes attempts at the same time. */
async function deleteOldest(tx: Transaction, delivery: ClaimedDelivery): Promise<void> {
  await tx`
    delete from attempts
    where id = any(array(
      select id from attempts
      where delivery_id = ${delivery.id}
      order by id desc
      offset ${maxStoredAttempts}
    ))`;
}
