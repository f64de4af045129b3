import { createPublicKey } from "node:crypto";
import { privateKeyOf } from "@halyard/testing";
import { describe, expect, it } from "@jest/globals";
import { headers } from "@nats-io/transport-node";
import { pino } from "pino";
import { messageHeaders } from "../src/message-headers.ts";
import {
  createMessageSigner,
  createMessageVerifier,
  type SignMessage,
} from "../src/message-signatures.ts";

const keys = {
  management: privateKeyOf("m"),
  scheduler: privateKeyOf("s"),
  "webhook-dispatcher": privateKeyOf("w"),
};
const formerKey = privateKeyOf("f");
const publicKeyOf = (key: typeof formerKey) => [createPublicKey(key)];
const logger = pino({ level: "silent" });
const verify = createMessageVerifier({
  publicKeys: {
    management: [createPublicKey(formerKey), createPublicKey(keys.management)],
    scheduler: publicKeyOf(keys.scheduler),
    "webhook-dispatcher": publicKeyOf(keys["webhook-dispatcher"]),
  },
  logger,
});

const event = { subject: "flag.deleted", payload: '{"id":"1"}', messageId: "1" };
type Message = { subject: string; payload: string; messageId?: string };

/** Signs one message, and returns what arrives if another message is stored with the signature. */
async function received(sign: SignMessage, signed: Message, stored: Message = signed) {
  const { headers: carried = headers() } = messageHeaders({ signature: await sign(signed) });
  if (stored.messageId !== undefined) carried.set("Nats-Msg-Id", stored.messageId);
  return { subject: stored.subject, payload: Buffer.from(stored.payload), headers: carried };
}

describe("given the public keys of all services that sign", () => {
  it.each([
    ["flag.created", "management"],
    ["schedule.resolved", "management"],
    ["schedule.due", "scheduler"],
    ["audit.recorded", "scheduler"],
    ["audit.recorded", "webhook-dispatcher"],
  ] as const)("accepts %s with the signature of %s", async (subject, writer) => {
    const message = { ...event, subject };
    expect(verify(await received(createMessageSigner(keys[writer]), message))).toEqual({ writer });
  });

  it("accepts a message without a message id", async () => {
    const message = { subject: "schedule.due", payload: "{}" };
    const sign = createMessageSigner(keys.scheduler);
    expect(verify(await received(sign, message))).toEqual({ writer: "scheduler" });
  });

  it("accepts the former key of a service", async () => {
    const message = await received(createMessageSigner(formerKey), event);
    expect(verify(message)).toEqual({ writer: "management" });
  });

  it.each([
    ["flag.created", "scheduler"],
    ["schedule.due", "management"],
    ["schedule.due", "webhook-dispatcher"],
    ["schedule.resolved", "scheduler"],
    ["audit.recorded", "management"],
  ] as const)("rejects %s with the signature of %s", async (subject, signer) => {
    const message = { ...event, subject };
    expect(verify(await received(createMessageSigner(keys[signer]), message))).toBe("forged");
  });

  it.each<[string, Message]>([
    ["another subject", { ...event, subject: "flag.created" }],
    ["another message id", { ...event, messageId: "2" }],
    ["no message id", { subject: event.subject, payload: event.payload }],
    ["another payload", { ...event, payload: '{"id":"2"}' }],
  ])("rejects a copied signature with %s", async (_what, stored) => {
    const sign = createMessageSigner(keys.management);
    expect(verify(await received(sign, event, stored))).toBe("forged");
  });

  it.each([
    ["no signature", undefined],
    ["an unknown signer", `${"0".repeat(16)}.${"A".repeat(86)}`],
    ["another text", "nonsense"],
  ])("rejects a message with %s", async (_what, signature) => {
    expect(verify(await received(async () => signature, event))).toBe("forged");
  });

  it("recognizes a message that was delivered from another stream", async () => {
    const foreign = { ...event, subject: "$KV.QUOTA.organization" };
    const sign = createMessageSigner(keys.management);
    expect(verify(await received(sign, event, foreign))).toBe("foreign");
  });

  it("signs a message always with the same signature", async () => {
    const sign = createMessageSigner(keys.management);
    expect(await sign(event)).toBe(await sign({ ...event }));
  });
});

describe("given no public keys, as in development", () => {
  const trusting = createMessageVerifier({ publicKeys: { management: undefined }, logger });

  it("accepts messages without signatures", async () => {
    const message = await received(createMessageSigner(undefined), event);
    expect(trusting(message)).toEqual({ writer: undefined });
  });

  it("does not verify a subject if one of its writers has none", async () => {
    const publicKeys = { scheduler: publicKeyOf(keys.scheduler) };
    const partly = createMessageVerifier({ publicKeys, logger });
    const audit = { ...event, subject: "audit.recorded" };
    for (const key of [keys.scheduler, formerKey, undefined])
      expect(partly(await received(createMessageSigner(key), audit))).toEqual({
        writer: undefined,
      });
    const due = { ...event, subject: "schedule.due" };
    expect(partly(await received(createMessageSigner(undefined), due))).toBe("forged");
  });
});
