import { connectPostgres } from "@halyard/postgres";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { recordAttempt } from "../../src/dispatch/attempt-store.ts";
import { claimDeliveries } from "../../src/dispatch/claim-store.ts";
import { recordEvent } from "../../src/events/consume-events.ts";
import { cancelLeftovers } from "../../src/webhooks/cancel-deliveries.ts";
import type { Webhook } from "../../src/webhooks/webhook.ts";
import { changeWebhook, deleteWebhook } from "../../src/webhooks/webhook-store.ts";
import { makeEvent, openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** Transactions that change a delivery, while another one disables or deletes the webhook. */

const dispatch = await openDispatch();
const logger = pino({ level: "silent" });
const sql = connectPostgres({ url: dispatch.runtimeUrl, name: "test", maxConnections: 4, logger });
afterAll(async () => {
  await sql.end();
  await dispatch.close();
});

async function claim({ id }: TestWebhook) {
  const claimed = { claim: uuidv7(), claimedAtMs: 0 };
  const [delivery] = await claimDeliveries(sql, { webhookIds: [id], atMost: 1, ...claimed });
  if (delivery === undefined) throw new Error("No delivery was claimed");
  return delivery;
}

/** Each prepares a webhook, and returns the transaction that makes its delivery due. */
const ways: Record<string, (webhook: TestWebhook) => Promise<() => Promise<unknown>>> = {
  "an event is recorded": async (webhook) => () => recordEvent(sql, makeEvent({}, webhook), uuidv7),
  "an attempt fails": async (webhook) => {
    await dispatch.putDeliveries(webhook, 1);
    const delivery = await claim(webhook);
    const outcome = { statusCode: 500, durationMs: 1, error: null, responseBody: "" };
    const attempt = { id: uuidv7(), attemptedAt: new Date(), ...outcome };
    const next = { status: "retrying", afterMs: 1, goneOnly: false } as const;
    return () => recordAttempt(sql, { delivery, attempt, next, slow: false });
  },
};

/** Locks the webhook's lane. A transaction that makes a delivery due writes it last, so it waits before its commit. */
async function holdLane({ id }: TestWebhook) {
  const locked = Promise.withResolvers<void>();
  const release = Promise.withResolvers<void>();
  const holding = dispatch.admin.begin(async (tx) => {
    await tx`select from lanes where webhook_id = ${id} for update`;
    locked.resolve();
    await release.promise;
  });
  await locked.promise;
  return async () => {
    release.resolve();
    await holding;
  };
}

async function waitingForLocks(): Promise<number> {
  const [row] = await dispatch.admin`
    select count(*)::integer as waiting from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`;
  return row?.waiting;
}

const audit = () => ({ author: "webhook-dispatcher", newId: uuidv7, now: new Date() }) as const;

describe("disabling a webhook", () => {
  it.each(Object.keys(ways))("while %s cancels the delivery", async (way) => {
    const webhook = await dispatch.newWebhook();
    const makeDue = await ways[way]?.(webhook);
    const releaseLane = await holdLane(webhook);
    const made = makeDue?.();
    await eventually(async () => (await waitingForLocks()) === 1);
    let isOff = false;
    const scope = { projectId: webhook.projectId, webhookId: webhook.id };
    const switchOff = (found: Webhook) => ({ ...found, enabled: false });
    const switchedOff = changeWebhook(sql, scope, switchOff, audit()).then(() => {
      isOff = true;
    });
    await eventually(async () => isOff || (await waitingForLocks()) === 2);
    await releaseLane();
    await Promise.all([made, switchedOff]);
    expect(await dispatch.deliveriesTo(webhook)).toMatchObject([{ status: "cancelled" }]);
  });
});

describe("deleting a webhook", () => {
  it("waits for an attempt to be recorded without a lock on the lane, so there is no deadlock", async () => {
    const webhook = await dispatch.newWebhook();
    await dispatch.putDeliveries(webhook, 1);
    await claim(webhook);
    const scope = { projectId: webhook.projectId, webhookId: webhook.id };
    const deleted = await dispatch.admin.begin(async (tx) => {
      await tx`select from deliveries where webhook_id = ${webhook.id} for update`;
      const deleting = deleteWebhook(sql, scope, { permit: () => undefined, audit: audit() });
      await eventually(async () => (await waitingForLocks()) === 1);
      await tx`select from lanes where webhook_id = ${webhook.id} for update nowait`;
      return { deleting };
    });
    await deleted.deleting;
    expect(await dispatch.deliveriesTo(webhook)).toMatchObject([{ status: "cancelled" }]);
  });

  it("is complete if it is interrupted, and its deliveries are cancelled later", async () => {
    const webhook = await dispatch.newWebhook();
    await dispatch.putDeliveries(webhook, 1);
    await claim(webhook);
    const scope = { projectId: webhook.projectId, webhookId: webhook.id };
    await dispatch.admin.begin(async (tx) => {
      await tx`select from deliveries where webhook_id = ${webhook.id} for update`;
      const deleting = deleteWebhook(sql, scope, { permit: () => undefined, audit: audit() });
      await eventually(async () => (await waitingForLocks()) === 1);
      await dispatch.admin`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      await expect(deleting).rejects.toThrow();
    });
    const entries = await dispatch.admin`
      select message ->> 'action' as action, message -> 'before' -> 'enabled' as enabled
      from audit_outbox where message ->> 'webhook_id' = ${webhook.id}`;
    expect([...entries]).toEqual([{ action: "webhook_deleted", enabled: true }]);
    expect(await dispatch.deliveriesTo(webhook)).toMatchObject([{ status: "delivering" }]);
    await cancelLeftovers(sql);
    expect(await dispatch.deliveriesTo(webhook)).toMatchObject([{ status: "cancelled" }]);
  });
});
