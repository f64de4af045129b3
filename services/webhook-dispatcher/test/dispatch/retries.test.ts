import { eventually } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { makeEvent, openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** Retries of deliveries, with delays of milliseconds instead of hours. */
const delayMs = 60;
/** Much shorter than in production, and long enough for a busy machine to respond. */
const timeoutMs = 3_000;
const immediately = async () => undefined;
let beforeSend: () => Promise<void> = immediately;

const dispatch = await openDispatch();
afterAll(() => dispatch.close());
const plan = Array.from({ length: 5 }, () => delayMs);
await dispatch.startReplica({ plan, timeoutMs, beforeSend: () => beforeSend() });
afterEach(() => {
  beforeSend = immediately;
  dispatch.receiver.reset();
});

async function publishTo(webhook: TestWebhook) {
  await dispatch.log.publish(makeEvent({}, webhook));
}

const answer = (status: number, headers: Record<string, string> = {}) =>
  ({ kind: "answer", status, headers, body: `answer ${status}` }) as const;

const isEnabled = async ({ id }: TestWebhook) => {
  const [row] = await dispatch.admin`select enabled from webhooks where id = ${id}`;
  return row?.enabled;
};

describe("a delivery whose target fails", () => {
  it("is retried five times with the same ids and body, and then fails", async () => {
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer(answer(500), webhook.path);
    await publishTo(webhook);
    const delivery = await dispatch.deliveryWith(webhook, "failed");
    expect(delivery).toMatchObject({ attempts_made: 6, next_attempt_at: null, delivered_at: null });
    expect(delivery.finished_at).not.toBeNull();
    const requests = dispatch.received(webhook);
    expect(requests).toHaveLength(6);
    for (const { headers, raw } of requests) {
      expect(headers["x-service-delivery"]).toBe(delivery.id);
      expect(raw).toEqual(requests[0]?.raw);
    }
    const attempts = await dispatch.attemptsAt(delivery);
    expect(attempts).toHaveLength(6);
    for (const attempt of attempts)
      expect(attempt).toMatchObject({ status_code: 500, response_body: "answer 500", error: null });
    const times = attempts.map((attempt) => attempt.attempted_at.getTime());
    for (const [index, time] of times.slice(1).entries())
      expect(time - (times[index] ?? 0)).toBeGreaterThanOrEqual(delayMs - 1);
  });

  it("fails when the stored URL has a blocked port", async () => {
    const webhook = await dispatch.newWebhook();
    await dispatch.admin`
      update webhooks set url = 'http://127.0.0.1:6379/' where id = ${webhook.id}`;
    await publishTo(webhook);
    const delivery = await dispatch.deliveryWith(webhook, "failed");
    expect(delivery.attempts_made).toBe(6);
    for (const attempt of await dispatch.attemptsAt(delivery))
      expect(attempt).toMatchObject({ status_code: null, error: "address not allowed" });
  });

  it("is delivered when a retry succeeds", async () => {
    const webhook = await dispatch.newWebhook();
    let requests = 0;
    dispatch.receiver.answer(() => {
      requests += 1;
      return answer(requests < 3 ? 503 : 204);
    }, webhook.path);
    await publishTo(webhook);
    const delivery = await dispatch.deliveryWith(webhook, "delivered");
    expect(delivery).toMatchObject({ attempts_made: 3, delivered_at: expect.any(Date) });
    const attempts = await dispatch.attemptsAt(delivery);
    expect(attempts.map((attempt) => attempt.status_code)).toEqual([503, 503, 204]);
  });

  it("is delayed by Retry-After", async () => {
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer(answer(429, { "retry-after": "3600" }), webhook.path);
    await publishTo(webhook);
    const delivery = await dispatch.deliveryWith(webhook, "retrying");
    const waitMs = (delivery.next_attempt_at?.getTime() ?? 0) - Date.now();
    expect(waitMs).toBeGreaterThan(3_500_000);
    expect(waitMs).toBeLessThan(3_700_000);
  });

  it("has an attempt without a status if the target hangs, and makes its webhook slow", async () => {
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer({ kind: "hang" }, webhook.path);
    // The second attempt waits until the test has checked the first.
    const checked = Promise.withResolvers<void>();
    let begun = 0;
    beforeSend = async () => {
      begun += 1;
      if (begun > 1) await checked.promise;
    };
    await publishTo(webhook);
    await eventually(() => begun === 2);
    const [delivery] = await dispatch.deliveriesTo(webhook);
    const [attempt] = await dispatch.attemptsAt({ id: delivery?.id ?? "" });
    expect(attempt).toMatchObject({ status_code: null, error: expect.any(String) });
    const isSlow = async () => {
      const [lane] = await dispatch.admin`select slow from lanes where webhook_id = ${webhook.id}`;
      return lane?.slow;
    };
    expect(await isSlow()).toBe(true);
    dispatch.receiver.answer(answer(200), webhook.path);
    checked.resolve();
    await dispatch.deliveryWith(webhook, "delivered");
    expect(await isSlow()).toBe(false);
  });

  it("is not redirected", async () => {
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer(answer(302, { location: "/elsewhere" }), webhook.path);
    await publishTo(webhook);
    await dispatch.deliveryWith(webhook, "failed");
    expect(dispatch.receiver.requests.map(({ path }) => path)).not.toContain("/elsewhere");
  });
});

describe("a target that responds with 410", () => {
  it("to every attempt has its webhook disabled and its open deliveries cancelled", async () => {
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer(
      ({ headers }) =>
        headers["x-service-event"] === "flag.toggled"
          ? answer(410)
          : answer(429, { "retry-after": "3600" }),
      webhook.path,
    );
    await dispatch.log.publish(makeEvent({ event: "flag.updated" }, webhook));
    await dispatch.deliveryWith(webhook, "retrying");
    await publishTo(webhook);
    await eventually(async () => (await isEnabled(webhook)) === false);
    const deliveries = await dispatch.deliveriesTo(webhook);
    expect(deliveries.map(({ status }) => status)).toEqual(["cancelled", "failed"]);
    await publishTo(webhook);
    await dispatch.log.isConsumed();
    expect(await dispatch.deliveriesTo(webhook)).toHaveLength(2);
  });

  it("to all attempts but one keeps its webhook enabled", async () => {
    const webhook = await dispatch.newWebhook();
    let requests = 0;
    dispatch.receiver.answer(() => {
      requests += 1;
      return answer(requests === 2 ? 500 : 410);
    }, webhook.path);
    await publishTo(webhook);
    await dispatch.deliveryWith(webhook, "failed");
    expect(await isEnabled(webhook)).toBe(true);
  });
});

describe("a redelivery", () => {
  it("has one attempt without retries", async () => {
    const webhook = await dispatch.newWebhook();
    await publishTo(webhook);
    const { id } = await dispatch.deliveryWith(webhook, "delivered");
    dispatch.receiver.answer(answer(500), webhook.path);
    await dispatch.admin`
      update deliveries set status = 'pending', redelivery = true, next_attempt_at = now(),
        finished_at = null
      where id = ${id}`;
    await dispatch.admin`update lanes set due_at = now() where webhook_id = ${webhook.id}`;
    const failed = await dispatch.deliveryWith(webhook, "failed");
    expect(failed).toMatchObject({ attempts_made: 2, delivered_at: expect.any(Date) });
  });
});
