import { createPrivateKey, createPublicKey, type KeyObject } from "node:crypto";
import { z } from "zod";
import { variable } from "./environment.ts";
import { commaSeparated } from "./shared-variables.ts";

/**
 * The key pairs of the services that write signed entries and messages. Only the writer has its private key. Services
 * that read what it writes have the public key, and for a week after a rotation also the former one.
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

const expectsPrivateKey = "an Ed25519 private key (PKCS#8, DER, base64)";
const expectsPublicKeys = "Ed25519 public keys (SPKI, DER, base64), separated by commas";

export const signingPrivateKeyVariable = variable(privateKey, {
  description:
    "Private key of management, which signs the API key entries and its messages in NATS. Required in production. See [signatures](security.md#signatures).",
  expects: expectsPrivateKey,
  documentedDefault: "not set: nothing is signed",
  secret: true,
});

export const signingPublicKeysVariable = variable(publicKeys, {
  description:
    "Public keys of management, which verify the API key entries and the messages of management in NATS; two after a rotation. Required in production, except in management.",
  expects: expectsPublicKeys,
  documentedDefault: "not set: nothing is verified",
});

/** The private key of a service other than management, which signs its messages. */
export const messagePrivateKeyVariable = (service: string) =>
  variable(privateKey, {
    description: `Private key of ${service}, which signs its messages in NATS. Required in production. See [signatures](security.md#signatures).`,
    expects: expectsPrivateKey,
    documentedDefault: "not set: messages are not signed",
    secret: true,
  });

/** The public keys of another service. Management verifies the messages of that service with them. */
export const messagePublicKeysVariable = (service: string) =>
  variable(publicKeys, {
    description: `Public keys of ${service}, which verify its messages in NATS; two after a rotation. Required in production.`,
    expects: expectsPublicKeys,
    documentedDefault: "not set: messages are not verified",
  });

type Mode = { HALYARD_MODE: "development" | "production" };

/** Rejects a production configuration without these variables. */
export function requireInProduction<S extends z.ZodObject>(schema: S, ...names: string[]): S {
  return names.reduce(
    (checked, name) =>
      checked.refine(
        (config) =>
          (config as Mode).HALYARD_MODE !== "production" ||
          (config as Record<string, unknown>)[name] !== undefined,
        `${name} is not set: it is required in production. See "Signatures" in docs/security.md.`,
      ),
    schema,
  );
}
