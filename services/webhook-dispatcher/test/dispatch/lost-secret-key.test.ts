import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Dispatch, makeEvent, openDispatch } from "./dispatch-fixture.ts";

/** Deliveries that cannot be signed where they are to be made, because a key is not known there (yet). */
let dispatch: Dispatch;
beforeAll(async () => {
  dispatch = await openDispatch();
  await dispatch.startReplica();
});
afterAll(() => dispatch?.close());

describe("a delivery whose webhook's secret needs an unknown key", () => {
  it("waits without an attempt being counted, and is made when the key is known", async () => {
    const { admin } = dispatch;
    const webhook = await dispatch.newWebhook({ secret: "whisper" });
    const nameKey = (name: string) =>
      admin`update webhooks set secret_key_id = ${name} where id = ${webhook.id}`;
    await nameKey("lost");
    await dispatch.log.publish(makeEvent({}, webhook));
    const waiting = await dispatch.deliveryWith(webhook, "delivering");
    const letClaimRunOut = () =>
      admin`update deliveries set claimed_until = now() where id = ${waiting.id}`;
    await letClaimRunOut();
    // Somebody has claimed it again.
    await eventually(async () => {
      const [delivery] = await dispatch.deliveriesTo(webhook);
      return delivery?.status === "delivering" && delivery.claimed_by !== waiting.claimed_by;
    });
    expect(await dispatch.attemptsAt(waiting)).toEqual([]);
    expect(dispatch.received(webhook)).toEqual([]);
    await nameKey("first");
    await letClaimRunOut();
    const delivery = await dispatch.deliveryWith(webhook, "delivered");
    expect(delivery.attempts_made).toBe(1);
  });
});
