import {
  keyRateVariables,
  operatorTokenDigestVariable,
  portVariable,
  postgresMaxConnectionsVariable,
  postgresUrlVariable,
  publicUrlVariable,
  sharedVariables,
  signingPublicKeysVariable,
} from "@halyard/configuration";
import type { z } from "zod";

/** Variables of a service with a PostgreSQL schema and routes that require a server key. */
export const serviceVariables = ({ port, schema }: { port: number; schema: string }) => ({
  ...sharedVariables,
  PORT: portVariable(port),
  POSTGRES_URL: postgresUrlVariable(schema),
  POSTGRES_MAX_CONNECTIONS: postgresMaxConnectionsVariable(10),
  SIGNING_PUBLIC_KEYS: signingPublicKeysVariable,
  ...keyRateVariables,
  OPERATOR_TOKEN_DIGEST: operatorTokenDigestVariable,
  PUBLIC_URL: publicUrlVariable,
});

export type ServiceConfig = z.output<z.ZodObject<ReturnType<typeof serviceVariables>>>;
