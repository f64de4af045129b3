import {
  readEnvironment,
  readPostgresOwnerUrl,
  requireInProduction,
  retentionDaysVariable,
} from "@halyard/configuration";
import { maxUsageDays } from "@halyard/contracts";
import { serviceVariables } from "@halyard/server-key-service";
import { z } from "zod";

export const configSchema = z.object({
  ...serviceVariables({ port: 8085, schema: "usage" }),
  USAGE_RETENTION_DAYS: retentionDaysVariable(
    // `GET /api/v1/usage/days` shows this many days.
    maxUsageDays,
    "Retention period of daily request counts, in days. Monthly totals stay.",
  ),
});

type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(requireInProduction(configSchema, "SIGNING_PUBLIC_KEYS"), process.env);

export const readOwnerUrl = (): string => readPostgresOwnerUrl("usage", process.env);
