import { createPrivateKey } from "node:crypto";
import { createEntrySigner } from "@halyard/api-keys";

/** A test key pair that signs the entries of API keys. */
const pkcs8Head = Buffer.from("302e020100300506032b657004220420", "hex");
const privateKey = createPrivateKey({
  key: Buffer.concat([pkcs8Head, Buffer.alloc(32, "b")]),
  format: "der",
  type: "pkcs8",
});
export const benchSigner = createEntrySigner(privateKey);

export const signingSettings = {
  management: {
    SIGNING_PRIVATE_KEY: privateKey.export({ format: "der", type: "pkcs8" }).toString("base64"),
  },
  readers: {
    SIGNING_PUBLIC_KEYS: benchSigner.publicKey
      .export({ format: "der", type: "spki" })
      .toString("base64"),
  },
};
