import { maxUsageDays } from "@halyard/contracts";
import {
  keyRateVariables,
  operatorTokenDigestVariable,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  readEnvironment,
  readPostgresOwnerUrl,
  requireInProduction,
  retentionDaysVariable,
  sharedVariables,
  signingPublicKeysVariable,
} from "@halyard/service";
import { z } from "zod";

export const configSchema = z.object({
  ...sharedVariables,
  PORT: portVariable(8085),
  POSTGRES_URL: postgresUrlVariable("usage"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  USAGE_RETENTION_DAYS: retentionDaysVariable(
    // `GET /api/v1/usage/days` shows this many days.
    maxUsageDays,
    "Retention period of daily request counts, in days. Monthly totals stay.",
  ),
  ...keyRateVariables,
  OPERATOR_TOKEN_DIGEST: operatorTokenDigestVariable,
  SIGNING_PUBLIC_KEYS: signingPublicKeysVariable,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(requireInProduction(configSchema, "SIGNING_PUBLIC_KEYS"), process.env);

export const readOwnerUrl = (): string => readPostgresOwnerUrl("usage", process.env);
