import {
  commaSeparated,
  keyRateVariables,
  limitVariable,
  operatorTokenDigestVariable,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  readEnvironment,
  readPostgresOwnerUrl,
  requireInProduction,
  sharedVariables,
  signingPublicKeysVariable,
  variable,
} from "@halyard/service";
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

/** Milliseconds of `500ms`, `30s`, `5m` or `2h`. */
function millisecondsOf(text: string): number {
  const { amount, unit } = duration.exec(text)?.groups ?? {};
  return Number(amount) * unitMs[unit as keyof typeof unitMs];
}

export const configSchema = z.object({
  ...sharedVariables,
  PORT: portVariable(8084),
  POSTGRES_URL: postgresUrlVariable("webhooks"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  SIGNING_PUBLIC_KEYS: signingPublicKeysVariable,
  ...keyRateVariables,
  OPERATOR_TOKEN_DIGEST: operatorTokenDigestVariable,
  WEBHOOK_SECRET_KEYS: variable(secretKeys, {
    description:
      "Keys with which the secrets of webhooks are encrypted in the database. The first encrypts, all decrypt: to change it, add the new one at the end in all dispatchers, then move it to the front in all of them, and take the old one away when no secret needs it any more.",
    expects:
      "keys such as 2026a:<32 bytes in base64>, separated by commas, each with another name before the colon",
    secret: true,
  }),
  WEBHOOK_ALLOW_PRIVATE_TARGETS: variable(
    z
      .enum(["true", "false"])
      .default("false")
      .transform((text) => text === "true"),
    {
      description:
        "Lets webhooks go to addresses that are not public: loopback, private networks, metadata services. For development; in production only where all customers are your own people, and with a warning at each start.",
      expects: "true or false",
    },
  ),
  WEBHOOKS_PER_PROJECT: limitVariable({
    default: 100,
    most: 1_000,
    description:
      "Maximum number of webhooks in a project. Each event makes a delivery for each of them, in one transaction.",
  }),
  WEBHOOK_TESTS_PER_ORGANIZATION: limitVariable({
    default: 5,
    most: 100,
    description:
      "Maximum number of concurrent webhook tests of an organization in this process. Each holds a request until the target responds.",
  }),
  WEBHOOK_RETRY_DELAYS: variable(
    commaSeparated
      .refine((items) => items.length > 0 && items.every((item) => duration.test(item)))
      .transform((items) => items.map(millisecondsOf))
      .default([60_000, 300_000, 1_800_000, 7_200_000, 43_200_000]),
    {
      description:
        "How long after each failed attempt of a delivery the next one is made; as many retries as there are delays.",
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
      description: "How many days deliveries that have ended are kept, with their attempts.",
      expects: "a number from 1 to 9999",
    },
  ),
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(requireInProduction(configSchema, "SIGNING_PUBLIC_KEYS"), process.env);

export const readOwnerUrl = (): string => readPostgresOwnerUrl("webhooks", process.env);
