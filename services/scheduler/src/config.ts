import {
  jetstreamReplicasVariable,
  keyRateVariables,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresOwnerUrlVariable,
  postgresUrlVariable,
  readEnvironment,
  sharedVariables,
} from "@halyard/service";
import { z } from "zod";

export const configSchema = z.object({
  ...sharedVariables,
  PORT: portVariable(8083),
  POSTGRES_URL: postgresUrlVariable("scheduler"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  JETSTREAM_REPLICAS: jetstreamReplicasVariable,
  ...keyRateVariables,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config => readEnvironment(configSchema, process.env);

export const migrateConfigSchema = z.object({
  POSTGRES_OWNER_URL: postgresOwnerUrlVariable("scheduler"),
});

export const readMigrateConfig = (): z.output<typeof migrateConfigSchema> =>
  readEnvironment(migrateConfigSchema, process.env);
