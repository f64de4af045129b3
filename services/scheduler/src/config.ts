import {
  keyRateVariables,
  operatorTokenDigestVariable,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  readEnvironment,
  readPostgresOwnerUrl,
  requireInProduction,
  sharedVariables,
  signingPublicKeysVariable,
} from "@halyard/service";
import { z } from "zod";

export const configSchema = z.object({
  ...sharedVariables,
  PORT: portVariable(8083),
  POSTGRES_URL: postgresUrlVariable("scheduler"),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  SIGNING_PUBLIC_KEYS: signingPublicKeysVariable,
  ...keyRateVariables,
  OPERATOR_TOKEN_DIGEST: operatorTokenDigestVariable,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(requireInProduction(configSchema, "SIGNING_PUBLIC_KEYS"), process.env);

export const readOwnerUrl = (): string => readPostgresOwnerUrl("scheduler", process.env);
