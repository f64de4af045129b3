import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  ConfigurationError,
  jetstreamReplicasVariable,
  natsVariables,
  readEnvironment,
  urlOf,
  variable,
} from "@halyard/configuration";
import { z } from "zod";

export const configSchema = z.object({
  POSTGRES_URL: variable(urlOf("postgres:", "postgresql:"), {
    description: "Database of Halyard, with the role `halyard_doctor` of `npm run setup`.",
    expects: "an address such as postgres://halyard_doctor:secret@host:5432/halyard",
    secret: true,
  }),
  ...natsVariables,
  JETSTREAM_REPLICAS: jetstreamReplicasVariable,
  BASE_URL: variable(urlOf("http:", "https:").optional(), {
    description: "Address of Halyard that clients use.",
    expects: "an address such as https://flags.example.com",
    documentedDefault: "not set: the gateway is not checked",
  }),
});

export type Config = z.output<typeof configSchema> & {
  /** Folder of a system that `npm start` runs. */
  home?: string;
};

/**
 * Reads the settings of a system that `npm start` runs from its home, and those of any other from the environment.
 *
 * @throws ConfigurationError if there is neither
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  if (environment.POSTGRES_URL || environment.POSTGRES_URL_FILE)
    return readEnvironment(configSchema, environment);
  const home = environment.HALYARD_HOME || ".halyard";
  const file = join(home, "doctor.json");
  if (!existsSync(file))
    throw new ConfigurationError([
      `No system runs in ${home}. Run npm start first, or name the folder in HALYARD_HOME.`,
      "For any other system, set POSTGRES_URL and the other variables. See --help.",
    ]);
  const written = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
  return { ...readEnvironment(configSchema, written), home };
}
