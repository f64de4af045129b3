import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { defaultBounds } from "../../src/dispatch/plan-claims.ts";
import { type Dispatch, makeEvent, openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** Targets that hang, and how little the others notice of them. */
let dispatch: Dispatch;
/** How long it takes while nothing hangs, on this machine as it is now. */
let aloneMs: number;
/** Longer than it really is, and not as long as a claim: none that hangs ends while a test looks on. */
const timeoutMs = 50_000;

beforeAll(async () => {
  dispatch = await openDispatch();
  await dispatch.startReplica({ timeoutMs });
  aloneMs = await quickestDeliveryMs(await dispatch.newWebhook(), 0);
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

/**
 * Who has to wait for a slot waits each time, and a busy machine does not hold up all of them. No more
 * once one was quick enough.
 */
async function quickestDeliveryMs(webhook: TestWebhook, enoughMs: number): Promise<number> {
  let quickestMs = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < 8 && quickestMs >= enoughMs; turn += 1)
    quickestMs = Math.min(quickestMs, await timeToDeliver(webhook));
  return quickestMs;
}

/** An attempt that takes longer lingers; who is held up by one is so for this time at least. */
const lingersAfterMs = 500;

async function hangingWebhooks(count: number, fields: Parameters<Dispatch["newWebhook"]>[0]) {
  const webhooks = await Promise.all(
    Array.from({ length: count }, () =>
      dispatch.newWebhook({ organizationId: uuidv7(), ...fields }),
    ),
  );
  for (const { path } of webhooks) dispatch.receiver.answer({ kind: "hang" }, path);
  return webhooks;
}

describe("a good target beside 200 that hang", () => {
  it("is told at once when they are known to be slow, and they get their share of slots", async () => {
    const hanging = await hangingWebhooks(200, { slow: true });
    await Promise.all(hanging.map((webhook) => dispatch.putDeliveries(webhook, 5)));
    await eventually(() => dispatch.receiver.hanging() >= 64);
    const good = await dispatch.newWebhook();
    const enoughMs = aloneMs + lingersAfterMs;
    expect(await quickestDeliveryMs(good, enoughMs)).toBeLessThan(enoughMs);
    expect(dispatch.receiver.hanging()).toBe(64);
  });

  it("is told in a moment when all of them begin to hang just now, and at once after that", async () => {
    const hangingBefore = dispatch.receiver.hanging();
    const hanging = await hangingWebhooks(200, {});
    await Promise.all(hanging.map((webhook) => dispatch.putDeliveries(webhook, 5)));
    await eventually(() => dispatch.receiver.hanging() >= hangingBefore + 192);
    const good = await dispatch.newWebhook();
    // Half a second is due. None of those that hang has ended then, which really they would do after 30 s.
    expect(await timeToDeliver(good)).toBeLessThan(10_000);
    expect(dispatch.receiver.hanging()).toBeGreaterThanOrEqual(hangingBefore + 192);
    await eventually(() => dispatch.receiver.hanging() >= hangingBefore + 200);
    const enoughMs = aloneMs + lingersAfterMs;
    expect(await quickestDeliveryMs(good, enoughMs)).toBeLessThan(enoughMs);
  });
});

describe("an organization", () => {
  it("that has a lot to send takes its part of the slots and no more", async () => {
    const organizationId = uuidv7();
    const busy = await Promise.all(
      Array.from({ length: 8 }, () => dispatch.newWebhook({ organizationId })),
    );
    const release = Promise.withResolvers<void>();
    for (const webhook of busy)
      dispatch.receiver.answer(
        { kind: "answer", status: 200, after: release.promise },
        webhook.path,
      );
    for (const webhook of busy) await dispatch.putDeliveries(webhook, 40, { isFound: false });
    // All become due at once, because a webhook without an attempt may begin one beyond the part.
    await dispatch.admin`
      update lanes set due_at = now() where organization_id = ${organizationId}`;
    const underWay = () =>
      busy.reduce((sum, webhook) => sum + dispatch.received(webhook).length, 0);
    const { sideBySide: part } = defaultBounds.organization;
    await eventually(() => underWay() >= part);
    // Whoever may claim more does so in the turn in which another organization has its delivery.
    await timeToDeliver(await dispatch.newWebhook());
    expect(underWay()).toBe(part);
    release.resolve();
    for (const webhook of busy) await dispatch.allEnded(webhook, 40);
  });
});

describe("a good target beside 90 that hang in its organization", () => {
  it("gets every event, from the first one on, while none of them has ended", async () => {
    const hangingBefore = dispatch.receiver.hanging();
    const scope = { organizationId: uuidv7(), projectId: uuidv7() };
    const hanging = await hangingWebhooks(90, scope);
    const good = await dispatch.newWebhook(scope);
    for (let event = 0; event < 20; event += 1) await timeToDeliver(good);
    expect(dispatch.receiver.hanging()).toBeGreaterThanOrEqual(hangingBefore + hanging.length);
    const [row] = await dispatch.admin`
      select count(*)::integer as ended from deliveries
      where webhook_id = any(${hanging.map(({ id }) => id)}::uuid[]) and attempts_made > 0`;
    expect(row?.ended).toBe(0);
  });
});
