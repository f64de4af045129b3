import { describe, expect, it } from "@jest/globals";
import { Webhook } from "standardwebhooks";
import { outgoing } from "../../src/sending/outgoing.ts";

const delivery = {
  deliveryId: "0199c7a0-0000-7000-8000-000000000001",
  event: "flag.toggled",
  payload: '{"event":"flag.toggled","flag":{"name":"Größe ☃"}}',
  at: new Date(),
};

describe("the request of a delivery", () => {
  it("has the stored payload and the headers of the contract", () => {
    const { headers, body } = outgoing({
      ...delivery,
      secrets: { current: "secret", previous: null },
    });
    expect(body).toBe(delivery.payload);
    expect(headers).toMatchObject({
      "Content-Type": "application/json",
      "User-Agent": expect.stringMatching(/^Halyard\/\d+\.\d+\.\d+$/),
      "X-Service-Event": "flag.toggled",
      "X-Service-Delivery": delivery.deliveryId,
      "X-Service-Signature": expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
      "webhook-id": delivery.deliveryId,
    });
    new Webhook(Buffer.from("secret"), { format: "raw" }).verify(body, headers);
  });

  it("has no signature without a secret", () => {
    const { headers } = outgoing({ ...delivery, secrets: { current: null, previous: null } });
    expect(Object.keys(headers).sort()).toEqual([
      "Content-Type",
      "User-Agent",
      "X-Service-Delivery",
      "X-Service-Event",
      "webhook-id",
      "webhook-timestamp",
    ]);
  });
});
