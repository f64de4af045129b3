import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import {
  completeAt,
  createEntrySigner,
  hasValidSignature,
  type KeySignatures,
} from "@halyard/api-keys";
import {
  entryKey,
  isSignedEntry,
  type SigningService,
  type SnapshotEntry,
} from "@halyard/contracts";
import { createMessageSigner, createMessageVerifier } from "@halyard/jetstream";
import { pino } from "pino";

/** An Ed25519 private key in PKCS#8 consists of this prefix and the seed. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

/** The key pairs of the services in tests. They protect nothing else. */
const privateKeys = {
  management: privateKeyOf("k"),
  scheduler: privateKeyOf("s"),
  "webhook-dispatcher": privateKeyOf("w"),
};
export const testSigner = createEntrySigner(privateKeys.management);

/** Environment variables of management and of all other services. */
export const testSigning = signingSettings(privateKeys.management);

/** Environment variables of the messages of scheduler and webhook dispatcher. */
export const testMessageSigning: Partial<Record<string, Record<string, string>>> = {
  management: {
    SCHEDULER_SIGNING_PUBLIC_KEYS: publicKeyText(privateKeys.scheduler),
    WEBHOOK_DISPATCHER_SIGNING_PUBLIC_KEYS: publicKeyText(privateKeys["webhook-dispatcher"]),
  },
  scheduler: { SCHEDULER_SIGNING_PRIVATE_KEY: privateKeyText(privateKeys.scheduler) },
  "webhook-dispatcher": {
    WEBHOOK_DISPATCHER_SIGNING_PRIVATE_KEY: privateKeyText(privateKeys["webhook-dispatcher"]),
  },
};

/** Returns the message signer of a service. */
export const testMessageSigner = (service: SigningService) =>
  createMessageSigner(privateKeys[service]);

/** Verifies the messages of all services. */
export const testMessageVerifier = createMessageVerifier({
  publicKeys: {
    management: [createPublicKey(privateKeys.management)],
    scheduler: [createPublicKey(privateKeys.scheduler)],
    "webhook-dispatcher": [createPublicKey(privateKeys["webhook-dispatcher"])],
  },
  logger: pino({ level: "silent" }),
});

/** Returns the verification of a service with the public key. */
export function testSignatures(): KeySignatures {
  const publicKeys = new Map([[testSigner.id, testSigner.publicKey]]);
  return {
    trusts: (signer) => signer === testSigner.id,
    isGenuine: (key, entry) => hasValidSignature(key, entry, publicKeys),
    isGenuineComplete: (entry, sequence) =>
      hasValidSignature(completeAt(sequence), entry, publicKeys),
  };
}

/** Returns the verification of entries and messages. */
export const testVerification = () => ({
  signatures: testSignatures(),
  verify: testMessageVerifier,
});

/** Returns the environment variables for a key pair. */
export function signingSettings(key: KeyObject) {
  return {
    management: { SIGNING_PRIVATE_KEY: privateKeyText(key) },
    readers: { SIGNING_PUBLIC_KEYS: publicKeyText(key) },
  };
}

function privateKeyText(key: KeyObject): string {
  return key.export({ format: "der", type: "pkcs8" }).toString("base64");
}

function publicKeyText(key: KeyObject): string {
  return createPublicKey(key).export({ format: "der", type: "spki" }).toString("base64");
}

/** Returns the private key whose seed repeats a letter. */
export function privateKeyOf(letter: string) {
  const key = Buffer.concat([pkcs8Head, Buffer.alloc(32, letter)]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

/** Returns the payload of an entry as management publishes it. */
export async function payloadOf(entry: SnapshotEntry, signer = testSigner): Promise<string> {
  const { signature: _, ...content } = entry.value as { signature?: string };
  const payload = JSON.stringify(content);
  return isSignedEntry(entry) ? signer.sign(entryKey(entry.address), payload) : payload;
}
