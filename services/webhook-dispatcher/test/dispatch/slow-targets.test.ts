import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { type Dispatch, makeEvent, openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** Targets that hang, and how little the others notice of them. */
let dispatch: Dispatch;

beforeAll(async () => {
  dispatch = await openDispatch();
  await dispatch.startReplica();
});
afterEach(async () => {
  // What hangs is over when its webhooks are switched off and the receiver lets go of it.
  await dispatch.admin`update webhooks set enabled = false`;
  await dispatch.admin`
    update deliveries set status = 'cancelled', next_attempt_at = null, finished_at = now()
    where status in ('pending', 'retrying')`;
  dispatch.receiver.reset();
});
afterAll(() => dispatch?.close());

async function timeToDeliver(webhook: TestWebhook): Promise<number> {
  const before = dispatch.received(webhook).length;
  const startedAt = performance.now();
  await dispatch.log.publish(makeEvent({}, webhook));
  await eventually(() => dispatch.received(webhook).length > before);
  return performance.now() - startedAt;
}

async function hangingWebhooks(count: number, fields: Parameters<Dispatch["newWebhook"]>[0]) {
  const webhooks = await Promise.all(
    Array.from({ length: count }, () =>
      dispatch.newWebhook({ ...fields, organizationId: uuidv7() }),
    ),
  );
  for (const { path } of webhooks) dispatch.receiver.answer({ kind: "hang" }, path);
  return webhooks;
}

describe("a good target beside 200 that hang", () => {
  it("is told at once when they are known to be slow, and they get their share of slots", async () => {
    const hanging = await hangingWebhooks(200, { slow: true });
    for (const webhook of hanging) await dispatch.putDeliveries(webhook, 5);
    await eventually(() => dispatch.receiver.hanging() >= 64);
    const good = await dispatch.newWebhook();
    for (let turn = 0; turn < 5; turn += 1) expect(await timeToDeliver(good)).toBeLessThan(700);
    expect(dispatch.receiver.hanging()).toBe(64);
  });

  it("is told in a moment when all of them begin to hang just now, and at once after that", async () => {
    const hangingBefore = dispatch.receiver.hanging();
    const hanging = await hangingWebhooks(200, {});
    for (const webhook of hanging) await dispatch.putDeliveries(webhook, 5);
    await eventually(() => dispatch.receiver.hanging() >= hangingBefore + 192);
    const good = await dispatch.newWebhook();
    expect(await timeToDeliver(good)).toBeLessThan(2_500);
    await eventually(() => dispatch.receiver.hanging() >= hangingBefore + 200);
    for (let turn = 0; turn < 5; turn += 1) expect(await timeToDeliver(good)).toBeLessThan(700);
  });
});

describe("an organization", () => {
  it("that has a lot to send takes its part of the slots and no more", async () => {
    const hangingBefore = dispatch.receiver.hanging();
    const organizationId = uuidv7();
    const busy = await Promise.all(
      Array.from({ length: 8 }, () => dispatch.newWebhook({ organizationId })),
    );
    let underWay = 0;
    let most = 0;
    for (const webhook of busy)
      dispatch.receiver.answer(() => {
        underWay += 1;
        most = Math.max(most, underWay);
        setTimeout(() => (underWay -= 1), 200);
        return { kind: "answer", status: 200, delayMs: 200 };
      }, webhook.path);
    for (const webhook of busy) await dispatch.putDeliveries(webhook, 40);
    for (const webhook of busy) await dispatch.allEnded(webhook, 40);
    expect(most).toBeLessThanOrEqual(64);
    expect(most).toBeGreaterThan(32);
    expect(dispatch.receiver.hanging()).toBe(hangingBefore);
  });
});
