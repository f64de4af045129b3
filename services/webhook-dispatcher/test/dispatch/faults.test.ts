import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { makeEvent, openDispatch } from "./dispatch-fixture.ts";

/** Unexpected errors in the attempts of one delivery. */
let isBroken = false;

const dispatch = await openDispatch();
afterAll(() => dispatch.close());
await dispatch.startReplica({
  plan: [20, 20],
  beforeSend: async () => {
    if (isBroken) throw new TypeError("whsec_secret");
  },
});
afterEach(() => {
  isBroken = false;
  dispatch.receiver.reset();
});

async function checkOthersAreSent() {
  const webhook = await dispatch.newWebhook();
  await dispatch.log.publish(makeEvent({}, webhook));
  await dispatch.deliveryWith(webhook, "delivered");
}

describe("an unexpected error while sending", () => {
  it("counts as a failed attempt, so the number of retries bounds it", async () => {
    isBroken = true;
    const webhook = await dispatch.newWebhook();
    await dispatch.log.publish(makeEvent({}, webhook));
    const delivery = await dispatch.deliveryWith(webhook, "failed");
    const attempts = await dispatch.attemptsAt(delivery);
    expect(attempts.map(({ error }) => error)).toEqual(Array(3).fill("request failed"));
    isBroken = false;
    await checkOthersAreSent();
  });
});

describe("an unexpected error while recording", () => {
  afterEach(() => dispatch.admin`alter table attempts drop constraint if exists no_teapots`);

  it("lets the claim expire, while other deliveries are sent", async () => {
    await dispatch.admin`
      alter table attempts add constraint no_teapots check (status_code <> 418)`;
    const webhook = await dispatch.newWebhook();
    dispatch.receiver.answer({ kind: "answer", status: 418 }, webhook.path);
    await dispatch.log.publish(makeEvent({}, webhook));
    await checkOthersAreSent();
    await dispatch.deliveryWith(webhook, "delivering");
    await dispatch.admin`alter table attempts drop constraint no_teapots`;
    dispatch.receiver.answer({ kind: "answer", status: 200 }, webhook.path);
    await dispatch.expireClaims(webhook);
    await dispatch.deliveryWith(webhook, "delivered");
  });
});
