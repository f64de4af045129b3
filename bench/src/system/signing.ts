import { createPrivateKey } from "node:crypto";
import { createEntrySigner } from "@halyard/api-keys";

/** A test key pair that signs the entries of API keys. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");
const pkcs8 = Buffer.concat([pkcs8Head, Buffer.alloc(32, "b")]);
export const benchSigner = createEntrySigner(
  createPrivateKey({ key: pkcs8, format: "der", type: "pkcs8" }),
);

const publicKey = benchSigner.publicKey.export({ format: "der", type: "spki" });
export const signingSettings = {
  management: { SIGNING_PRIVATE_KEY: pkcs8.toString("base64") },
  readers: { SIGNING_PUBLIC_KEYS: publicKey.toString("base64") },
};
