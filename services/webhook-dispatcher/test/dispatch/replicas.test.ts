import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { type Dispatch, makeEvent, openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** Replicas that share the work, and replicas that fail, are suspended or are stopped. */
let dispatch: Dispatch;
let ended: (() => Promise<void>)[] = [];

beforeAll(async () => {
  dispatch = await openDispatch();
});
afterEach(async () => {
  await Promise.all(ended.map((stop) => stop()));
  ended = [];
  dispatch.receiver.reset();
});
afterAll(() => dispatch?.close());

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
 * send a delivery that is due for a moment.
 */
async function putClaimed(webhook: TestWebhook, inMs: number) {
  await dispatch.admin`
    insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
      status, created_at, next_attempt_at, claimed_by, claimed_until)
    values (${uuidv7()}, ${webhook.id}, ${webhook.organizationId}, ${webhook.projectId}, ${uuidv7()},
      'flag.toggled', '{}', 'delivering', now(), null, ${uuidv7()},
      now() + ${inMs} * interval '1 millisecond')`;
}

describe("a claim of a failed replica", () => {
  it("is released after it has expired, and the delivery is sent", async () => {
    const webhook = await dispatch.newWebhook();
    await startReplica();
    await putClaimed(webhook, -1);
    await dispatch.deliveryWith(webhook, "delivered");
    expect(dispatch.received(webhook)).toHaveLength(1);
  });

  it("is not released before", async () => {
    const [held, marker] = [await dispatch.newWebhook(), await dispatch.newWebhook()];
    await startReplica();
    await putClaimed(held, 60_000);
    await putClaimed(marker, -1);
    await dispatch.deliveryWith(marker, "delivered");
    expect(dispatch.received(held)).toEqual([]);
    await dispatch.deliveryWith(held, "delivering");
  });

  it("ends with a cancelled delivery if the webhook was disabled or deleted", async () => {
    const [off, deleted] = [await dispatch.newWebhook(), await dispatch.newWebhook()];
    await putClaimed(off, -1);
    await putClaimed(deleted, -1);
    await dispatch.admin`update webhooks set enabled = false where id = ${off.id}`;
    await dispatch.admin`delete from webhooks where id = ${deleted.id}`;
    await startReplica();
    for (const webhook of [off, deleted]) {
      const cancelled = await dispatch.deliveryWith(webhook, "cancelled");
      expect(cancelled.finished_at).not.toBeNull();
    }
    expect(dispatch.receiver.requests).toEqual([]);
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
    await dispatch.admin`
      update deliveries set claimed_until = now() - interval '1 s' where webhook_id = ${webhook.id}`;
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
      // A suspended replica does not check for expired claims either.
      claimTimes: { pollIntervalMs: 3_600_000 },
      beforeSend: async () => {
        sends += 1;
        if (sends === 1) await held.promise;
      },
    });
    dispatch.receiver.answer({ kind: "answer", status: 200 }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await eventually(() => sends === 1);
    await startReplica();
    await dispatch.admin`
      update deliveries set claimed_until = now() - interval '1 s' where webhook_id = ${webhook.id}`;
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
    dispatch.receiver.answer({ kind: "answer", status: 200, delayMs: 300 }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await eventually(() => dispatch.received(webhook).length === 1);
    await replica.stop();
    const [delivery] = await dispatch.deliveriesTo(webhook);
    expect(delivery?.status).toBe("delivered");
  });

  it("releases hanging deliveries, and another replica sends them again immediately", async () => {
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
