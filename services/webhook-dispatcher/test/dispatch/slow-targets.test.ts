import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { defaultBounds } from "../../src/dispatch/plan-claims.ts";
import { type Dispatch, makeEvent, openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** The effect of hanging targets on others. */
/** Much longer than in production, so that no hanging attempt ends during a test on a busy machine. */
const timeoutMs = 600_000;

const dispatch = await openDispatch();
afterAll(() => dispatch.close());
await dispatch.startReplica({ timeoutMs, claimTimeoutMs: 2 * timeoutMs });
/** The duration of a delivery on this machine while no target hangs. */
const aloneMs = await quickestDeliveryMs(await dispatch.newWebhook(), 0);
afterEach(async () => {
  // Hanging attempts end when the receiver is reset, and are not retried because their webhooks are disabled. They must
  // not count against the attempts of the next test.
  await dispatch.admin`update webhooks set enabled = false`;
  await dispatch.admin`
    update deliveries set status = 'cancelled', next_attempt_at = null, finished_at = now()
    where status in ('pending', 'retrying')`;
  dispatch.receiver.reset();
  await eventually(async () => {
    const [row] = await dispatch.admin`
      select count(*)::integer as under_way from deliveries where status = 'delivering'`;
    return row?.under_way === 0;
  });
});

async function timeToDeliver(webhook: TestWebhook): Promise<number> {
  const before = dispatch.received(webhook).length;
  const startedAt = performance.now();
  await dispatch.log.publish(makeEvent({}, webhook));
  await eventually(() => dispatch.received(webhook).length > before);
  return performance.now() - startedAt;
}

/**
 * Returns the shortest of up to eight durations. A webhook that must wait for other attempts waits every time, but a
 * busy machine does not delay all of them. Stops below `enoughMs`.
 */
async function quickestDeliveryMs(webhook: TestWebhook, enoughMs: number): Promise<number> {
  let quickestMs = Number.POSITIVE_INFINITY;
  for (let count = 0; count < 8 && quickestMs >= enoughMs; count += 1)
    quickestMs = Math.min(quickestMs, await timeToDeliver(webhook));
  return quickestMs;
}

/** Time after which an attempt lingers. A delivery that waits for another attempt is delayed by at least this time. */
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

describe("a healthy target beside 200 that hang", () => {
  it("receives events immediately if the others are slow, and these get only the share of slow webhooks", async () => {
    const hanging = await hangingWebhooks(200, { slow: true });
    await Promise.all(hanging.map((webhook) => dispatch.putDeliveries(webhook, 5)));
    await eventually(() => dispatch.receiver.hanging() >= 64);
    const good = await dispatch.newWebhook();
    const enoughMs = aloneMs + lingersAfterMs;
    expect(await quickestDeliveryMs(good, enoughMs)).toBeLessThan(enoughMs);
    expect(dispatch.receiver.hanging()).toBe(64);
  });

  it("receives events after a short delay if all begin to hang now, and immediately afterwards", async () => {
    const hanging = await hangingWebhooks(200, {});
    await Promise.all(hanging.map((webhook) => dispatch.putDeliveries(webhook, 5)));
    await eventually(() => dispatch.receiver.hanging() >= 192);
    const good = await dispatch.newWebhook();
    // About half a second is expected. No hanging attempt has ended then.
    await timeToDeliver(good);
    expect(dispatch.receiver.hanging()).toBeGreaterThanOrEqual(192);
    await eventually(() => dispatch.receiver.hanging() >= 200);
    const enoughMs = aloneMs + lingersAfterMs;
    expect(await quickestDeliveryMs(good, enoughMs)).toBeLessThan(enoughMs);
  });
});

describe("an organization", () => {
  it("with a large backlog uses only its share of the attempts", async () => {
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
    // All become due at the same time, because a webhook without an attempt may begin one beyond the share.
    await dispatch.admin`
      update lanes set due_at = now() where organization_id = ${organizationId}`;
    const underWay = () =>
      busy.reduce((sum, webhook) => sum + dispatch.received(webhook).length, 0);
    const { sideBySide: share } = defaultBounds.organization;
    await eventually(() => underWay() >= share);
    // A dispatcher that could claim more for this organization would do so before it sends this delivery.
    await timeToDeliver(await dispatch.newWebhook());
    expect(underWay()).toBe(share);
    release.resolve();
    for (const webhook of busy) await dispatch.allEnded(webhook, 40);
  });
});

describe("a healthy target beside 90 that hang in its organization", () => {
  it("receives every event before any of the hanging attempts ends", async () => {
    const scope = { organizationId: uuidv7(), projectId: uuidv7() };
    const hanging = await hangingWebhooks(90, scope);
    const good = await dispatch.newWebhook(scope);
    for (let event = 0; event < 20; event += 1) await timeToDeliver(good);
    expect(dispatch.receiver.hanging()).toBeGreaterThanOrEqual(hanging.length);
    const [row] = await dispatch.admin`
      select count(*)::integer as ended from deliveries
      where webhook_id = any(${hanging.map(({ id }) => id)}::uuid[]) and attempts_made > 0`;
    expect(row?.ended).toBe(0);
  });
});
