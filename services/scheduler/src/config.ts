import {
  keyRateVariables,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  readEnvironment,
  readPostgresOwnerUrl,
  sharedVariables,
} from "@halyard/service";
import { z } from "zod";

export const configSchema = z.object({
  ...sharedVariables,
  PORT: portVariable(8083),
  POSTGRES_URL: postgresUrlVariable("scheduler"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  ...keyRateVariables,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config => readEnvironment(configSchema, process.env);

export const readOwnerUrl = (): string => readPostgresOwnerUrl("scheduler", process.env);
