import { createPrivateKey } from "node:crypto";
import {
  completeAt,
  createEntrySigner,
  hasValidSignature,
  type KeySignatures,
} from "@halyard/api-keys";
import { entryKey, isSignedEntry, type SnapshotEntry } from "@halyard/contracts";

/** An Ed25519 private key in PKCS#8 consists of this prefix and the seed. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

/** The key pair that signs the entries of API keys in tests. It protects nothing else. */
const privateKey = privateKeyOf("k");
export const testSigner = createEntrySigner(privateKey);

/** Environment variables of management and of all other services. */
export const testSigning = signingSettings(privateKey);

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

/** Returns the environment variables for a key pair. */
export function signingSettings(key: ReturnType<typeof privateKeyOf>) {
  const der = (exported: Buffer) => exported.toString("base64");
  return {
    management: { SIGNING_PRIVATE_KEY: der(key.export({ format: "der", type: "pkcs8" })) },
    readers: {
      SIGNING_PUBLIC_KEYS: der(
        createEntrySigner(key).publicKey.export({ format: "der", type: "spki" }),
      ),
    },
  };
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
