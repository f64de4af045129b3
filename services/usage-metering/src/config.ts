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
  PORT: portVariable(8085),
  POSTGRES_URL: postgresUrlVariable("usage"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  ...keyRateVariables,
  JETSTREAM_REPLICAS: jetstreamReplicasVariable,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config => readEnvironment(configSchema, process.env);

export const migrateConfigSchema = z.object({
  POSTGRES_OWNER_URL: postgresOwnerUrlVariable("usage"),
});

export const readMigrateConfig = (): z.output<typeof migrateConfigSchema> =>
  readEnvironment(migrateConfigSchema, process.env);
