import {
  jetstreamReplicasVariable,
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
  PORT: portVariable(8085),
  POSTGRES_URL: postgresUrlVariable("usage"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  ...keyRateVariables,
  JETSTREAM_REPLICAS: jetstreamReplicasVariable,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config => readEnvironment(configSchema, process.env);

export const readOwnerUrl = (): string => readPostgresOwnerUrl("usage", process.env);
