import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { type MadeAttempt, recordAttempt } from "../../src/dispatch/attempt-store.ts";
import { claimDeliveries } from "../../src/dispatch/claim-store.ts";
import { openDispatch, type TestWebhook } from "./dispatch-fixture.ts";

/** The effects of a recorded attempt on its delivery and its webhook. */

const dispatch = await openDispatch();
afterAll(() => dispatch.close());
const replica = await dispatch.startReplica();
const sql = replica.sql;

/** Claims a new delivery for the test. The lane is not due, so the dispatcher does not claim it. */
async function claimed(webhook: TestWebhook) {
  await dispatch.putDeliveries(webhook, 1, { isFound: false });
  return claimAgain(webhook);
}

async function claimAgain({ id }: TestWebhook) {
  const planned = { webhookIds: [id], atMost: 1, claim: uuidv7(), claimedAtMs: 0 };
  const [delivery] = await claimDeliveries(sql, planned);
  if (delivery === undefined) throw new Error("No delivery was claimed");
  return delivery;
}

const made = (
  delivery: MadeAttempt["delivery"],
  statusCode: number,
  next: MadeAttempt["next"],
): MadeAttempt => ({
  delivery,
  attempt: {
    id: uuidv7(),
    attemptedAt: new Date(),
    statusCode,
    durationMs: 1,
    error: null,
    responseBody: "",
  },
  next,
  slow: false,
});
const delivered = { status: "delivered", goneOnly: false } as const;
const retryingIn = (afterMs: number, goneOnly: boolean) =>
  ({ status: "retrying", afterMs, goneOnly }) as const;
const gone = { status: "failed", goneOnly: true } as const;
const anHourMs = 3_600_000;

const rowOf = async ({ id }: { id: string }) => {
  const [row] = await dispatch.admin`select * from deliveries where id = ${id}`;
  return row;
};
const isEnabled = async ({ id }: TestWebhook) => {
  const [row] = await dispatch.admin`select enabled from webhooks where id = ${id}`;
  return row?.enabled;
};

describe("an attempt that is recorded again because the first response was lost", () => {
  it.each([delivered, retryingIn(anHourMs, false)])("changes nothing more: %j", async (next) => {
    const delivery = await claimed(await dispatch.newWebhook());
    const attempt = made(delivery, 200, next);
    await recordAttempt(sql, attempt);
    const before = await rowOf(delivery);
    await recordAttempt(sql, attempt);
    expect(await rowOf(delivery)).toEqual(before);
    expect(before).toMatchObject({ status: next.status, attempts_made: 1 });
    expect(await dispatch.attemptsAt(delivery)).toHaveLength(1);
  });
});

describe("a target that responds with 410 to all attempts of a delivery", () => {
  it("has its webhook disabled", async () => {
    const webhook = await dispatch.newWebhook();
    await recordAttempt(sql, made(await claimed(webhook), 410, gone));
    expect(await isEnabled(webhook)).toBe(false);
    const outbox = await dispatch.admin`
      select message from audit_outbox where message ->> 'webhook_id' = ${webhook.id}`;
    expect(outbox.map(({ message }) => message)).toMatchObject([
      {
        action: "webhook_changed",
        service: "webhook-dispatcher",
        user_id: null,
        api_key_id: null,
        before: { enabled: true },
        after: { enabled: false, changed_fields: ["enabled"] },
      },
    ]);
  });

  it("changes nothing if the webhook has another URL now", async () => {
    const webhook = await dispatch.newWebhook();
    const delivery = await claimed(webhook);
    await dispatch.putDeliveries(webhook, 1, { isFound: false });
    await dispatch.admin`
      update webhooks set url = 'https://example.com/corrected' where id = ${webhook.id}`;
    await recordAttempt(sql, made(delivery, 410, gone));
    expect(await isEnabled(webhook)).toBe(true);
    const statuses = (await dispatch.deliveriesTo(webhook)).map(({ status }) => status);
    expect(statuses.sort()).toEqual(["failed", "pending"]);
  });
});

describe("an attempt whose claim was lost", () => {
  it.each([
    { statusCode: 500, goneOnly: false },
    { statusCode: 410, goneOnly: true },
  ])("still counts for disabling the webhook: $statusCode", async ({ statusCode, goneOnly }) => {
    const webhook = await dispatch.newWebhook();
    const lost = await claimed(webhook);
    await dispatch.admin`
      update deliveries set next_attempt_at = now() where id = ${lost.id}`;
    const later = await claimAgain(webhook);
    const late = made(lost, statusCode, retryingIn(anHourMs, goneOnly));
    expect(await recordAttempt(sql, late)).toEqual({ status: "claim lost" });
    expect(await rowOf(lost)).toMatchObject({ status: "delivering", gone_only: goneOnly });
    await recordAttempt(sql, made(later, 410, gone));
    expect(await rowOf(lost)).toMatchObject({ status: "failed", gone_only: goneOnly });
    expect(await isEnabled(webhook)).toBe(!goneOnly);
  });
});

describe("an attempt that took long", () => {
  it.each([delivered, retryingIn(anHourMs, false)])("makes its webhook slow: %j", async (next) => {
    const webhook = await dispatch.newWebhook();
    await recordAttempt(sql, { ...made(await claimed(webhook), 200, next), slow: true });
    const [lane] = await dispatch.admin`select slow from lanes where webhook_id = ${webhook.id}`;
    expect(lane?.slow).toBe(true);
  });
});

describe("a delivery with many redeliveries", () => {
  it.each([
    { name: "delivered", next: delivered },
    { name: "failed", next: { status: "failed", goneOnly: false } as const },
  ])("keeps the newest 100 of its attempts when it is $name", async ({ next }) => {
    const webhook = await dispatch.newWebhook();
    const delivery = await claimed(webhook);
    const before = Array.from({ length: 105 }, () => ({
      id: uuidv7(),
      delivery_id: delivery.id,
      attempted_at: new Date(),
      duration_ms: 1,
    }));
    await dispatch.admin`insert into attempts ${dispatch.admin(before)}`;
    await dispatch.admin`update deliveries set attempts_made = 105 where id = ${delivery.id}`;
    const attempt = made(delivery, 200, next);
    await recordAttempt(sql, attempt);
    const kept = await dispatch.attemptsAt(delivery);
    const newest = [...before.slice(6), attempt.attempt].map(({ id }) => id);
    expect(kept.map(({ id }) => id)).toEqual(newest);
  });
});
