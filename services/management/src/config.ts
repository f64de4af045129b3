import {
  flagEventsMaxBytesVariable,
  jetstreamReplicasVariable,
  keyRateVariables,
  messagePublicKeysVariable,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  readEnvironment,
  readPostgresOwnerUrl,
  requireInProduction,
  retentionDaysVariable,
  sharedVariables,
  signingPrivateKeyVariable,
  signingPublicKeysVariable,
  variable,
} from "@halyard/configuration";
import { z } from "zod";
import { requireSignInTogether, signInVariables } from "./sign-in/settings.ts";
import { parsePlans, plansExpectation } from "./tenancy/parse-plans.ts";

/** Minimum length of the operator token: a 128-bit key in hex. */
const minTokenLength = 32;

/** Parses `PLANS`. Error messages name the plan and continue a sentence that begins with the name of the variable. */
const Plans = z
  .string()
  .transform((text, context) => {
    const parsed = parsePlans(text);
    if ("plans" in parsed) return parsed.plans;
    for (const message of parsed.problems)
      context.addIssue({ code: "custom", message, params: { isSentenceEnd: true } });
    return z.NEVER;
  })
  .default({});

export const configSchema = z.object({
  ...sharedVariables,
  PORT: portVariable(8081),
  POSTGRES_URL: postgresUrlVariable("management"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(20),
  OPERATOR_TOKEN: variable(z.string().min(minTokenLength), {
    description: "Bearer token of the platform operator.",
    expects: `a secret of at least ${minTokenLength} characters`,
    secret: true,
  }),
  PLANS: variable(Plans, {
    description:
      'Additional plans, or other limits for `free`, `starter`, `pro`, `growth` and `unlimited`. Null is unlimited, and so is `configuration_bytes` where it is absent. Every API key can read the names and limits of all plans. Example: `{"team":{"requests_per_month":5000000,"sse_connections":200,"projects":null,"configuration_bytes":134217728}}`.',
    expects: plansExpectation,
    documentedDefault: "none",
  }),
  AUDIT_RETENTION_DAYS: retentionDaysVariable(
    30,
    "Retention period of the audit log and the history of flags, in days. Two older history entries of each existing flag and environment stay: the state at the start of the period and the entry before it.",
  ),
  ENDED_KEY_RETENTION_DAYS: retentionDaysVariable(
    30,
    "Retention period of revoked and expired API keys, in days.",
  ),
  JETSTREAM_REPLICAS: jetstreamReplicasVariable,
  SIGNING_PRIVATE_KEY: signingPrivateKeyVariable,
  SIGNING_PUBLIC_KEYS: signingPublicKeysVariable,
  SCHEDULER_SIGNING_PUBLIC_KEYS: messagePublicKeysVariable("the scheduler"),
  WEBHOOK_DISPATCHER_SIGNING_PUBLIC_KEYS: messagePublicKeysVariable("the webhook dispatcher"),
  FLAG_EVENTS_MAX_BYTES: flagEventsMaxBytesVariable,
  ...signInVariables,
  ...keyRateVariables,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(
    requireInProduction(
      requireSignInTogether(configSchema),
      "SIGNING_PRIVATE_KEY",
      "SCHEDULER_SIGNING_PUBLIC_KEYS",
      "WEBHOOK_DISPATCHER_SIGNING_PUBLIC_KEYS",
    ),
    process.env,
  );

export const readOwnerUrl = (): string => readPostgresOwnerUrl("management", process.env);

/** Reads the database URL, the only variable of the commands that work on the database. */
export const readDatabaseUrl = (): string =>
  readEnvironment(configSchema.pick({ POSTGRES_URL: true }), process.env).POSTGRES_URL;
