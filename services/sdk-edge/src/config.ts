import { listenHost, readEnvironment, sharedVariables, variable } from "@halyard/service";
import { z } from "zod";

/** Every environment variable of an edge. */
export const configSchema = z.object({
  ...sharedVariables,
  SNAPSHOT_CACHE_FILE: variable(z.string().optional(), {
    description:
      "A file of this edge alone, in which it keeps a copy of the flags to start from while NATS is away.",
    expects: "the path of a file",
    documentedDefault: "not set: without NATS, an edge that starts has nothing to serve",
  }),
});

export type Config = z.infer<typeof configSchema> & { host: string };

export function readConfig(): Config {
  const config = readEnvironment(configSchema, process.env);
  return { ...config, host: listenHost(config) };
}
