import { accessSync, constants, existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { hasCode } from "@halyard/local-backends";
import type { z } from "zod";

export type Mode = "development" | "production";

/** Environment variables that the launcher passes on, by service. The services define and check them. */
type SettingsOfServices = Readonly<Record<string, Readonly<Record<string, string>>>>;

export type Settings = {
  projectDir: string;
  /** Directory of everything that outlives a run: data, keys, logs. */
  home: string;
  /** Directory of downloaded programs, which can be deleted at any time. */
  cacheDir: string;
  /** The gateway's port; 0 means any free port. */
  port: number;
  mode: Mode;
  /** Existing servers that replace the local ones. */
  natsUrl: string | undefined;
  /** The login for `natsUrl`, as environment variables. */
  natsLogin: Readonly<Record<string, string>>;
  postgresUrl: string | undefined;
  /** The given operator token, which replaces the generated one. */
  operatorToken: string | undefined;
  logLevel: string;
  /** Settings passed on to the services, by service. */
  ofServices: SettingsOfServices;
  /** Whether npm is the parent process. The run then ends when npm ends. */
  startedByNpm: boolean;
};

export type SettingsResult = { ok: true; settings: Settings } | { ok: false; problems: string[] };

const natsLoginVariables = [
  "NATS_USER",
  "NATS_PASSWORD",
  "NATS_CREDENTIALS_FILE",
  "NATS_NKEY_SEED_FILE",
  "NATS_TLS_CA_FILE",
  "NATS_TLS_CERT_FILE",
  "NATS_TLS_KEY_FILE",
];

const DEFAULT_PORT = 8080;
const HIGHEST_PORT = 65_535;
const SHORTEST_OPERATOR_TOKEN = 32;

const projectDir = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");

/** Reads and checks the whole environment, including the settings of the services. Reports every problem. */
export async function readCheckedSettings(
  environment: NodeJS.ProcessEnv = process.env,
): Promise<SettingsResult> {
  const result = readSettings(environment);
  const value = valueIn(environment);
  const logLevel = value("LOG_LEVEL");
  const ofServices = readSettingsOfServices(value);
  const problems = await findProblemsOfServices(projectDir, {
    ...ofServices,
    // Every process has this variable; checking it for one of them is enough.
    management: { ...ofServices.management, ...(logLevel && { LOG_LEVEL: logLevel }) },
  });
  if (problems.length === 0) return result;
  return { ok: false, problems: result.ok ? problems : [...result.problems, ...problems] };
}

function valueIn(environment: NodeJS.ProcessEnv): (name: string) => string | undefined {
  return (name) => environment[name]?.trim() || undefined;
}

/** Reads the settings of the launcher. Reports every problem, not only the first. */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): SettingsResult {
  const problems: string[] = [];
  const value = valueIn(environment);

  const port = value("PORT") ?? String(DEFAULT_PORT);
  if (!/^\d+$/.test(port) || Number(port) > HIGHEST_PORT) {
    problems.push(
      `PORT must be a number from 0 (any free port) to ${HIGHEST_PORT}, but is "${port}".`,
    );
  }
  const defaultMode = value("NODE_ENV") === "production" ? "production" : "development";
  const mode = value("HALYARD_MODE") ?? defaultMode;
  if (mode !== "development" && mode !== "production") {
    problems.push(`HALYARD_MODE must be "development" or "production", but is "${mode}".`);
  }
  const operatorToken = value("OPERATOR_TOKEN");
  if (operatorToken !== undefined && operatorToken.length < SHORTEST_OPERATOR_TOKEN) {
    problems.push(`OPERATOR_TOKEN must have at least ${SHORTEST_OPERATOR_TOKEN} characters.`);
  }
  const postgresUrl = value("POSTGRES_URL");
  if (
    postgresUrl !== undefined &&
    !/^postgres(ql)?:$/.test(URL.parse(postgresUrl)?.protocol ?? "")
  ) {
    problems.push("POSTGRES_URL must look like postgres://user:password@host:5432/postgres.");
  }
  if (problems.length > 0) return { ok: false, problems };
  const home = resolve(value("HALYARD_HOME") ?? join(projectDir, ".halyard"));
  return {
    ok: true,
    settings: {
      projectDir,
      home,
      cacheDir: chooseCacheDir(home),
      port: Number(port),
      mode: mode === "production" ? "production" : "development",
      natsUrl: value("NATS_URL"),
      natsLogin: Object.fromEntries(
        natsLoginVariables.flatMap((name) => {
          const given = value(name);
          return given === undefined ? [] : [[name, given]];
        }),
      ),
      postgresUrl,
      operatorToken,
      logLevel: value("LOG_LEVEL") ?? "info",
      ofServices: readSettingsOfServices(value),
      startedByNpm: value("npm_lifecycle_event") !== undefined,
    },
  };
}

/** Returns the project's cache, which all homes share, or one in the home if the project is not writable. */
function chooseCacheDir(home: string): string {
  const ofProject = join(projectDir, ".cache");
  const writable = isWritable(existsSync(ofProject) ? ofProject : projectDir);
  return writable ? ofProject : join(home, "cache");
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch (error) {
    if (hasCode(error, "EACCES", "EROFS")) return false;
    throw error;
  }
}

const keyLimits = ["KEY_REQUESTS_PER_SECOND", "KEY_REQUESTS_BURST"];

const handedOn: Readonly<Record<string, readonly string[]>> = {
  management: ["PLANS", "AUDIT_RETENTION_DAYS", "ENDED_KEY_RETENTION_DAYS", ...keyLimits],
  scheduler: keyLimits,
  "sdk-edge": ["SDK_REQUESTS_PER_SECOND", "INVALID_KEYS_PER_SECOND", "INVALID_KEYS_BURST"],
  "usage-metering": ["USAGE_RETENTION_DAYS", ...keyLimits],
  "webhook-dispatcher": [
    "WEBHOOKS_PER_PROJECT",
    "WEBHOOK_TESTS_PER_ORGANIZATION",
    "WEBHOOK_RETRY_DELAYS",
    "WEBHOOK_DELIVERY_RETENTION_DAYS",
    ...keyLimits,
  ],
};

function readSettingsOfServices(
  read: (variable: string) => string | undefined,
): SettingsOfServices {
  const settings: Record<string, Record<string, string>> = {};
  for (const [service, variables] of Object.entries(handedOn)) {
    const given = variables.flatMap((variable) => {
      const value = read(variable);
      return value === undefined ? [] : [[variable, value]];
    });
    settings[service] = Object.fromEntries(given);
  }
  return settings;
}

/** The configuration module of a service. */
type Described = { configSchema: { pick(names: Record<string, true>): z.ZodObject } };

/**
 * Returns the problems that the services would report about these settings, so that a mistake ends the start before
 * the databases start. Loads the configuration modules only of services that have settings.
 */
async function findProblemsOfServices(
  projectDir: string,
  settings: SettingsOfServices,
): Promise<string[]> {
  const problems = new Set<string>();
  for (const [service, given] of Object.entries(settings)) {
    if (Object.keys(given).length === 0) continue;
    const { ConfigurationError, readEnvironment } = await import("@halyard/service");
    const { configSchema }: Described = await import(
      join(projectDir, "services", service, "src/config.ts")
    );
    const names = Object.keys(given).map((name) => [name, true] as const);
    try {
      readEnvironment(configSchema.pick(Object.fromEntries(names)), given);
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      for (const problem of error.problems) problems.add(problem);
    }
  }
  return [...problems];
}
