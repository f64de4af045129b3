import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { type Dispatch, makeEvent, openDispatch } from "./dispatch-fixture.ts";

/** Faults that nobody has thought of, in the attempts at one delivery. */
let dispatch: Dispatch;
let isBroken = false;

beforeAll(async () => {
  dispatch = await openDispatch();
  await dispatch.startReplica({
    plan: [20, 20],
    beforeSend: async () => {
      if (isBroken) throw new TypeError("whsec_secret");
    },
  });
});
afterEach(() => {
  isBroken = false;
  dispatch.receiver.reset();
});
afterAll(() => dispatch?.close());

async function isServed() {
  const webhook = await dispatch.newWebhook();
  await dispatch.log.publish(makeEvent({}, webhook));
  await dispatch.deliveryWith(webhook, "delivered");
}

describe("a fault of sending", () => {
  it("is an attempt that failed, and the retries end", async () => {
    isBroken = true;
    const webhook = await dispatch.newWebhook();
    await dispatch.log.publish(makeEvent({}, webhook));
    const delivery = await dispatch.deliveryWith(webhook, "failed");
    const attempts = await dispatch.attemptsAt(delivery);
    expect(attempts.map(({ error }) => error)).toEqual(Array(3).fill("request failed"));
    isBroken = false;
    await isServed();
  });
});

describe("a fault of recording", () => {
  afterEach(() => dispatch.admin`alter table attempts drop constraint if exists no_teapots`);

  it("leaves the claim to run out, while others are served", async () => {
    await dispatch.admin`
      alter table attempts add constraint no_teapots check (status_code <> 418)`;
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer({ kind: "answer", status: 418 }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await isServed();
    const { id } = await dispatch.deliveryWith(webhook, "delivering");
    await dispatch.admin`alter table attempts drop constraint no_teapots`;
    dispatch.receiver.answer({ kind: "answer", status: 200 }, webhook.path);
    // Where the answer was recorded only now, there is no claim to run out any more.
    await dispatch.admin`
      update deliveries set claimed_until = now() - interval '1 s'
      where id = ${id} and status = 'delivering'`;
    await dispatch.deliveryWith(webhook, "delivered");
  });
});
