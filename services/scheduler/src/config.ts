import {
  messagePrivateKeyVariable,
  readEnvironment,
  readPostgresOwnerUrl,
  requireInProduction,
} from "@halyard/configuration";
import { serviceVariables } from "@halyard/server-key-service";
import { z } from "zod";

export const configSchema = z.object({
  ...serviceVariables({ port: 8083, schema: "scheduler" }),
  SCHEDULER_SIGNING_PRIVATE_KEY: messagePrivateKeyVariable("the scheduler"),
});

type Config = z.output<typeof configSchema>;

export const readConfig = (): Config =>
  readEnvironment(
    requireInProduction(configSchema, "SIGNING_PUBLIC_KEYS", "SCHEDULER_SIGNING_PRIVATE_KEY"),
    process.env,
  );

export const readOwnerUrl = (): string => readPostgresOwnerUrl("scheduler", process.env);
