import {
  commaSeparated,
  limitVariable,
  messagePrivateKeyVariable,
  readEnvironment,
  readPostgresOwnerUrl,
  requireInProduction,
  variable,
} from "@halyard/configuration";
import { serviceVariables } from "@halyard/server-key-service";
import { z } from "zod";
import { readSecretKeys } from "./secrets/secret-box.ts";

const secretKeys = z.string().transform((text, context) => {
  const keys = readSecretKeys(text);
  if (keys !== undefined) return keys;
  context.addIssue({ code: "custom" });
  return z.NEVER;
});

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;
const duration = /^(?<amount>\d{1,6})(?<unit>ms|s|m|h)$/;

/** Converts a duration such as `500ms`, `30s`, `5m` or `2h` to milliseconds. */
function millisecondsOf(text: string): number {
  const { amount, unit } = duration.exec(text)?.groups ?? {};
  return Number(amount) * unitMs[unit as keyof typeof unitMs];
}

export const configSchema = z.object({
  ...serviceVariables({ port: 8084, schema: "webhooks" }),
  WEBHOOK_DISPATCHER_SIGNING_PRIVATE_KEY: messagePrivateKeyVariable("the webhook dispatcher"),
  WEBHOOK_SECRET_KEYS: variable(secretKeys, {
    description:
      "Keys that encrypt the webhook secrets in the database. The first key encrypts; all keys decrypt. Must be the same on all dispatchers. See [rotation](runbooks.md#rotate-the-keys-of-webhook-secrets).",
    expects:
      "keys such as 2026a:<32 bytes in base64>, separated by commas, each with a unique name",
    secret: true,
  }),
  WEBHOOK_ALLOW_PRIVATE_TARGETS: variable(
    z
      .enum(["true", "false"])
      .default("false")
      .transform((text) => text === "true"),
    {
      description:
        "Allows webhooks to private addresses: loopback, private networks, metadata services. For development, or if all customers are your own people.",
      expects: "true or false",
    },
  ),
  WEBHOOKS_PER_PROJECT: limitVariable({
    default: 100,
    max: 1_000,
    description: "Maximum number of webhooks in a project.",
  }),
  WEBHOOK_TESTS_PER_ORGANIZATION: limitVariable({
    default: 5,
    max: 100,
    description: "Maximum number of concurrent webhook tests of an organization in this process.",
  }),
  WEBHOOK_RETRY_DELAYS: variable(
    commaSeparated
      .refine((items) => items.length > 0 && items.every((item) => duration.test(item)))
      .transform((items) => items.map(millisecondsOf))
      .default([60_000, 300_000, 1_800_000, 7_200_000, 43_200_000]),
    {
      description:
        "Delay before each retry of a delivery. The number of delays is the number of retries.",
      expects: "durations such as 30s, 5m or 2h, separated by commas",
      documentedDefault: "1m,5m,30m,2h,12h",
    },
  ),
  WEBHOOK_DELIVERY_RETENTION_DAYS: variable(
    z
      .string()
      .regex(/^\d{1,4}$/)
      .transform(Number)
      .pipe(z.int().min(1))
      .default(30),
    {
      description: "Retention period of ended deliveries and their attempts, in days.",
      expects: "a number from 1 to 9999",
    },
  ),
});

type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(
    requireInProduction(
      configSchema,
      "SIGNING_PUBLIC_KEYS",
      "WEBHOOK_DISPATCHER_SIGNING_PRIVATE_KEY",
    ),
    process.env,
  );

export const readOwnerUrl = (): string => readPostgresOwnerUrl("webhooks", process.env);
