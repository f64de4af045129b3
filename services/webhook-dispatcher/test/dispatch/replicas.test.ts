import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { cancelLeftovers } from "../../src/webhooks/cancel-deliveries.ts";
import { changeWebhook, deleteWebhook } from "../../src/webhooks/webhook-store.ts";
import {
  type Dispatch,
  makeEvent,
  openDispatch,
  type Replica,
  type TestWebhook,
} from "./dispatch-fixture.ts";

/** Replicas that share the work, and replicas that fail, are suspended or are stopped. */
let ended: (() => Promise<void>)[] = [];

const dispatch = await openDispatch();
afterAll(() => dispatch.close());
afterEach(async () => {
  await Promise.all(ended.map((stop) => stop()));
  ended = [];
  dispatch.receiver.reset();
});

async function startReplica(options: Parameters<Dispatch["startReplica"]>[0] = {}) {
  const replica = await dispatch.startReplica(options);
  ended.push(replica.stop);
  return replica;
}

const idsReceived = () =>
  dispatch.receiver.requests.map(({ headers }) => String(headers["x-service-delivery"]));

describe("several replicas", () => {
  it("share the due deliveries, and send none twice", async () => {
    const webhooks = await Promise.all(Array.from({ length: 10 }, () => dispatch.newWebhook()));
    for (const webhook of webhooks) await dispatch.putDeliveries(webhook, 50);
    const replicas = await Promise.all([1, 2, 3].map(() => startReplica()));
    for (const webhook of webhooks) await dispatch.allEnded(webhook, 50);
    expect(idsReceived()).toHaveLength(500);
    expect(new Set(idsReceived()).size).toBe(500);
    const shares = await Promise.all(
      replicas.map(async ({ metrics }) => {
        const text = await metrics.metrics();
        return Number(/deliveries_total\{[^}]*"delivered"[^}]*\} (\d+)/.exec(text)?.[1] ?? 0);
      }),
    );
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(500);
  });

  it("share the events too", async () => {
    const webhook = await dispatch.newWebhook();
    await Promise.all([1, 2].map(() => startReplica()));
    await dispatch.log.publish(...Array.from({ length: 100 }, () => makeEvent({}, webhook)));
    await dispatch.allEnded(webhook, 100);
    expect(new Set(idsReceived()).size).toBe(100);
    expect(idsReceived()).toHaveLength(100);
  });
});

/**
 * Inserts a delivery that a replica has claimed but not sent. It is claimed from the start: a replica that runs could
 * send a delivery that is due for a moment. The lane is due, as it is if the replica failed directly after the claim.
 */
async function putClaimed(webhook: TestWebhook, inMs: number) {
  await dispatch.admin`
    insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
      status, created_at, next_attempt_at, claimed_by)
    values (${uuidv7()}, ${webhook.id}, ${webhook.organizationId}, ${webhook.projectId}, ${uuidv7()},
      'flag.toggled', '{}', 'delivering', now(), now() + ${inMs} * interval '1 millisecond',
      ${uuidv7()})`;
  await dispatch.admin`update lanes set due_at = now() where webhook_id = ${webhook.id}`;
}

/** Waits until the webhook's lane has this due time. */
const laneIsDue = (webhook: TestWebhook, at: Date | null | undefined) =>
  eventually(async () => {
    const [lane] = await dispatch.admin`select due_at from lanes where webhook_id = ${webhook.id}`;
    return lane?.due_at?.getTime() === at?.getTime();
  });

const setEnabled = ({ sql }: Replica, { id, projectId }: TestWebhook, enabled: boolean) =>
  changeWebhook(
    sql,
    { projectId, webhookId: id },
    (webhook) => ({ ...webhook, enabled, updatedAt: new Date() }),
    { author: "webhook-dispatcher", newId: uuidv7, now: new Date() },
  );

describe("a claim of a failed replica", () => {
  it("expires, and the delivery is sent", async () => {
    const webhook = await dispatch.newWebhook();
    await startReplica();
    await putClaimed(webhook, -1);
    await dispatch.deliveryWith(webhook, "delivered");
    expect(dispatch.received(webhook)).toHaveLength(1);
  });

  it("expires without a change by another process", async () => {
    const webhook = await dispatch.newWebhook();
    await startReplica();
    // PostgreSQL's clock decides. A second is longer than the replica's first search takes.
    await putClaimed(webhook, 1_000);
    await dispatch.deliveryWith(webhook, "delivered");
    expect(dispatch.received(webhook)).toHaveLength(1);
  });

  it("holds the delivery until it expires", async () => {
    const held = await dispatch.newWebhook();
    await startReplica();
    await putClaimed(held, 60_000);
    const [delivery] = await dispatch.deliveriesTo(held);
    await laneIsDue(held, delivery?.next_attempt_at);
    expect(dispatch.received(held)).toEqual([]);
    await dispatch.deliveryWith(held, "delivering");
  });

  it("ends with a cancelled delivery if the webhook was disabled", async () => {
    const webhook = await dispatch.newWebhook();
    await putClaimed(webhook, -1);
    await dispatch.admin`update webhooks set enabled = false where id = ${webhook.id}`;
    const replica = await startReplica();
    await laneIsDue(webhook, null);
    await dispatch.deliveryWith(webhook, "delivering");
    await cancelLeftovers(replica.sql);
    const cancelled = await dispatch.deliveryWith(webhook, "cancelled");
    expect(cancelled.finished_at).not.toBeNull();
    expect(dispatch.receiver.requests).toEqual([]);
  });

  it("ends with a cancelled delivery when the webhook is deleted, even before it expires", async () => {
    const webhook = await dispatch.newWebhook();
    const { sql } = await startReplica();
    await putClaimed(webhook, 60_000);
    const scope = { projectId: webhook.projectId, webhookId: webhook.id };
    const audit = { author: "webhook-dispatcher", newId: uuidv7, now: new Date() } as const;
    await deleteWebhook(sql, scope, { permit: () => undefined, audit });
    await dispatch.deliveryWith(webhook, "cancelled");
  });

  it("is found after it expires if the webhook was disabled and enabled meanwhile", async () => {
    const webhook = await dispatch.newWebhook();
    const replica = await startReplica();
    await putClaimed(webhook, 60_000);
    await setEnabled(replica, webhook, false);
    await dispatch.admin`update lanes set due_at = now() where webhook_id = ${webhook.id}`;
    await laneIsDue(webhook, null);
    await setEnabled(replica, webhook, true);
    const delivery = await dispatch.deliveryWith(webhook, "delivering");
    await laneIsDue(webhook, delivery.next_attempt_at);
  });
});

describe("a replica that is suspended", () => {
  it("for too long between claiming and sending leaves the delivery to the others", async () => {
    const webhook = await dispatch.newWebhook();
    let nowMs = 0;
    // Every reading of the clock is half a minute later than the previous one.
    await startReplica({ monotonicMs: () => (nowMs += 30_000) });
    await dispatch.log.publish(makeEvent({}, webhook));
    await dispatch.deliveryWith(webhook, "delivering");
    await Promise.all(ended.map((stop) => stop()));
    expect(dispatch.received(webhook)).toEqual([]);
    await dispatch.expireClaims(webhook);
    await startReplica();
    await dispatch.deliveryWith(webhook, "delivered");
    expect(dispatch.received(webhook)).toHaveLength(1);
  });

  it("during a request stores its attempt, and does not overwrite the result of another replica", async () => {
    const webhook = await dispatch.newWebhook();
    const held = Promise.withResolvers<void>();
    let sends = 0;
    ended.push(async () => held.resolve());
    const still = await startReplica({
      beforeSend: async () => {
        sends += 1;
        if (sends === 1) await held.promise;
      },
    });
    dispatch.receiver.answer({ kind: "answer", status: 200 }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await eventually(() => sends === 1);
    await startReplica();
    await dispatch.expireClaims(webhook);
    const delivered = await dispatch.deliveryWith(webhook, "delivered");
    expect(delivered.attempts_made).toBe(1);
    dispatch.receiver.answer({ kind: "answer", status: 500 }, webhook.path);
    held.resolve();
    await eventually(async () => (await dispatch.attemptsAt(delivered)).length === 2);
    const [after] = await dispatch.deliveriesTo(webhook);
    expect(after).toMatchObject({ status: "delivered", attempts_made: 2, next_attempt_at: null });
    expect(await still.metrics.metrics()).toMatch(/"claim_lost"[^}]*\} 1/);
  });
});

describe("a replica that is stopped", () => {
  it("completes and records the attempts in progress", async () => {
    const webhook = await dispatch.newWebhook();
    const replica = await startReplica();
    const { promise: after, resolve: respond } = Promise.withResolvers<void>();
    dispatch.receiver.answer({ kind: "answer", status: 200, after }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await eventually(() => dispatch.received(webhook).length === 1);
    const stopped = replica.stop();
    respond();
    await stopped;
    const [delivery] = await dispatch.deliveriesTo(webhook);
    expect(delivery?.status).toBe("delivered");
  });

  it("makes hanging deliveries due, and another replica sends them again immediately", async () => {
    const webhook = await dispatch.newWebhook();
    const replica = await startReplica();
    dispatch.receiver.answer({ kind: "hang" }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await eventually(() => dispatch.received(webhook).length === 1);
    await replica.stop();
    dispatch.receiver.answer({ kind: "answer", status: 200 }, webhook.path);
    await startReplica();
    const delivery = await dispatch.deliveryWith(webhook, "delivered");
    expect(delivery.attempts_made).toBe(1);
  });
});
