import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { makeEvent, openDispatch } from "./dispatch-fixture.ts";

/** Deliveries that this dispatcher cannot sign, because the key of the secret is not configured. */
const dispatch = await openDispatch();
afterAll(() => dispatch.close());
await dispatch.startReplica();

describe("a delivery whose webhook's secret needs an unknown key", () => {
  it("waits without counting attempts, and is sent when the key is known", async () => {
    const { admin } = dispatch;
    const webhook = await dispatch.newWebhook({ secret: "whisper" });
    const nameKey = (name: string) =>
      admin`update webhooks set secret_key_id = ${name} where id = ${webhook.id}`;
    await nameKey("lost");
    await dispatch.log.publish(makeEvent({}, webhook));
    const waiting = await dispatch.deliveryWith(webhook, "delivering");
    await dispatch.expireClaims(webhook);
    // The dispatcher claims the delivery again.
    await eventually(async () => {
      const [delivery] = await dispatch.deliveriesTo(webhook);
      return delivery?.status === "delivering" && delivery.claimed_by !== waiting.claimed_by;
    });
    expect(await dispatch.attemptsAt(waiting)).toEqual([]);
    expect(dispatch.received(webhook)).toEqual([]);
    await nameKey("first");
    await dispatch.expireClaims(webhook);
    const delivery = await dispatch.deliveryWith(webhook, "delivered");
    expect(delivery.attempts_made).toBe(1);
  });
});
