import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { z } from "zod";
import { variable } from "./environment.ts";
import { commaSeparated } from "./shared-variables.ts";

/**
 * The key pair that signs the entries of API keys in the snapshot. Management has the private key. Every service that
 * reads API keys has the public key, or two during a rotation.
 */
const privateKey = z
  .string()
  .transform((text, context) => {
    const der = Buffer.from(text, "base64");
    const key = readKey(() => createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
    if (key === undefined) context.addIssue({ code: "custom" });
    return key ?? z.NEVER;
  })
  .optional();

const publicKeys = commaSeparated
  .transform((texts, context) =>
    texts.flatMap((text) => {
      const der = Buffer.from(text, "base64");
      const key = readKey(() => createPublicKey({ key: der, format: "der", type: "spki" }));
      if (key === undefined) context.addIssue({ code: "custom" });
      return key ?? [];
    }),
  )
  // A list of empty items would switch verification off.
  .refine((keys) => keys.length > 0)
  .optional();

function readKey(read: () => KeyObject): KeyObject | undefined {
  try {
    const key = read();
    return key.asymmetricKeyType === "ed25519" ? key : undefined;
  } catch {
    return undefined;
  }
}

export const signingPrivateKeyVariable = variable(privateKey, {
  description:
    "Private key that signs the API key entries in NATS. Required in production. See [signed key entries](security.md#signed-key-entries).",
  expects: "an Ed25519 private key (PKCS#8, DER, base64)",
  documentedDefault: "not set: entries are not signed",
  secret: true,
});

export const signingPublicKeysVariable = variable(publicKeys, {
  description:
    "Public keys that verify the API key entries in NATS; two during a rotation. Required in production, except in management.",
  expects: "Ed25519 public keys (SPKI, DER, base64), separated by commas",
  documentedDefault: "not set: entries are not verified",
});

type Mode = { HALYARD_MODE: "development" | "production" };

/** Rejects a production configuration without this variable. */
export function requireInProduction<S extends z.ZodObject>(schema: S, name: string): S {
  return schema.refine(
    (config) =>
      (config as Mode).HALYARD_MODE !== "production" ||
      (config as Record<string, unknown>)[name] !== undefined,
    `${name} is not set: it is required in production. See "Signed key entries" in docs/security.md.`,
  );
}
