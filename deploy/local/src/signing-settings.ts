import { createPrivateKey, createPublicKey } from "node:crypto";

/** An Ed25519 private key as PKCS#8 is this and its seed of 32 bytes. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");

/** The key pair that signs the entries of API keys, as management and the other services take it. */
export function signingSettings(seed: string): {
  management: { SIGNING_PRIVATE_KEY: string };
  readers: { SIGNING_PUBLIC_KEYS: string };
} {
  const der = Buffer.concat([pkcs8Head, Buffer.from(seed, "base64url")]);
  const publicKey = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  const spki = publicKey.export({ format: "der", type: "spki" });
  return {
    management: { SIGNING_PRIVATE_KEY: der.toString("base64") },
    readers: { SIGNING_PUBLIC_KEYS: spki.toString("base64") },
  };
}
