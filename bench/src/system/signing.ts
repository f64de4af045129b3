import { createPrivateKey, createPublicKey } from "node:crypto";
import { createEntrySigner } from "@halyard/api-keys";

/** Test key pairs of the services that sign. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

function keyPair(letter: string) {
  const pkcs8 = Buffer.concat([pkcs8Head, Buffer.alloc(32, letter)]);
  const privateKey = createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" });
  const spki = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  return { privateKey, texts: [pkcs8.toString("base64"), spki.toString("base64")] as const };
}

const management = keyPair("b");
const scheduler = keyPair("s");
const dispatcher = keyPair("w");
export const benchSigner = createEntrySigner(management.privateKey);

export const signingSettings = {
  management: { SIGNING_PRIVATE_KEY: management.texts[0] },
  readers: { SIGNING_PUBLIC_KEYS: management.texts[1] },
  /** Variables for the messages of scheduler and webhook dispatcher. */
  messages: {
    management: {
      SCHEDULER_SIGNING_PUBLIC_KEYS: scheduler.texts[1],
      WEBHOOK_DISPATCHER_SIGNING_PUBLIC_KEYS: dispatcher.texts[1],
    },
    scheduler: { SCHEDULER_SIGNING_PRIVATE_KEY: scheduler.texts[0] },
    "webhook-dispatcher": { WEBHOOK_DISPATCHER_SIGNING_PRIVATE_KEY: dispatcher.texts[0] },
  },
};
