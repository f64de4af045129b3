import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { z } from "zod";
import { variable } from "./environment.ts";
import { commaSeparated } from "./shared-variables.ts";

/**
 * The key pair that signs the entries of API keys in the snapshot. Management has the private key. Every service
 * that reads API keys has the public key, during a rotation two.
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
  // A list of blanks would turn verification off.
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
    "Signs the entries of API keys in the snapshot. Required in production. [Signed key entries](security.md#signed-key-entries) describes how to make and rotate it.",
  expects: "an Ed25519 private key: PKCS#8, DER, base64",
  documentedDefault: "not set: entries are not signed",
  secret: true,
});

export const signingPublicKeysVariable = variable(publicKeys, {
  description:
    "Verify the entries of API keys in the snapshot. During a rotation, the public keys of both key pairs.",
  expects: "Ed25519 public keys, separated by commas: SPKI, DER, base64",
  documentedDefault: "not set: entries are not verified",
});

type Mode = { HALYARD_MODE: "development" | "production" };

/** Rejects a production configuration without this variable. */
export function requireInProduction<S extends z.ZodObject>(schema: S, name: string): S {
  return schema.refine(
    (config) =>
      (config as Mode).HALYARD_MODE !== "production" ||
      (config as Record<string, unknown>)[name] !== undefined,
    `${name} is not set: production needs it. docs/security.md, "Signed key entries", describes how to make one.`,
  );
}
