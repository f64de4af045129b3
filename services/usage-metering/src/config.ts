import {
  keyRateVariables,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  readEnvironment,
  readPostgresOwnerUrl,
  retentionDaysVariable,
  sharedVariables,
} from "@halyard/service";
import { z } from "zod";

export const configSchema = z.object({
  ...sharedVariables,
  PORT: portVariable(8085),
  POSTGRES_URL: postgresUrlVariable("usage"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  USAGE_RETENTION_DAYS: retentionDaysVariable(
    62,
    "Retention period, in days, of the requests by environment, endpoint and day. The sums by organization and month stay.",
  ),
  ...keyRateVariables,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config => readEnvironment(configSchema, process.env);

export const readOwnerUrl = (): string => readPostgresOwnerUrl("usage", process.env);
