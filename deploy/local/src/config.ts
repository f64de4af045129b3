import { accessSync, constants, existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigurationError, readEnvironment, readVariable } from "@halyard/configuration";
import { hasCode } from "@halyard/local-backends";
import type { z } from "zod";

export type Mode = "development" | "production";

export type Settings = {
  projectDir: string;
  /** Directory of everything that outlives a run: data, keys, logs. */
  home: string;
  /** Directory of downloaded programs, which can be deleted at any time. */
  cacheDir: string;
  /** The gateway's port; 0 means any free port. */
  port: number;
  /** The built-in proxy, or HAProxy. */
  gateway: "built-in" | "proxy";
  mode: Mode;
  /** Existing servers that replace the local ones. */
  natsUrl: string | undefined;
  postgresUrl: string | undefined;
  /** The given operator token, which replaces the generated one. */
  operatorToken: string | undefined;
  /** True if npm is the launcher's parent process. The run then ends together with npm. */
  startedByNpm: boolean;
  /** Environment variables that the launcher passes on, by process. */
  ofProcesses: Readonly<Record<ProcessName, Readonly<Record<string, string>>>>;
};

/**
 * Returns the address at which browsers open Halyard. It names the host `localhost` by default, because a passkey cannot
 * belong to an IP address.
 */
export function publicUrlOf({ ofProcesses, port }: Settings): string {
  return ofProcesses.management.PUBLIC_URL ?? `http://localhost:${port}`;
}

type SettingsResult = { ok: true; settings: Settings } | { ok: false; problems: string[] };

/** The processes of Halyard, and the directories of their programs, in the order of their start. */
export const programDirs = {
  management: "services/management",
  scheduler: "services/scheduler",
  "sdk-edge": "services/sdk-edge",
  "usage-metering": "services/usage-metering",
  "webhook-dispatcher": "services/webhook-dispatcher",
  dashboard: "deploy/dashboard",
  gateway: "deploy/gateway",
} as const;

export type ProcessName = keyof typeof programDirs;

const projectDir = resolve(import.meta.dirname, "../../..");

type Read = (name: string) => string | undefined;

/** Reads and checks the settings of the launcher and of all processes. Reports every problem. */
export async function readSettings(
  environment: NodeJS.ProcessEnv = process.env,
): Promise<SettingsResult> {
  const problems = new Set<string>();
  const value = (name: string) => {
    const read = readVariable(name, environment);
    if (typeof read !== "object") return read?.trim() || undefined;
    problems.add(read.problem);
    return undefined;
  };
  const ofProcesses = await readPassedOn(value, problems);
  const postgresUrl = value("POSTGRES_URL");
  if (
    postgresUrl !== undefined &&
    !/^postgres(?:ql)?:$/.test(URL.parse(postgresUrl)?.protocol ?? "")
  ) {
    problems.add("POSTGRES_URL must look like postgres://user:password@host:5432/postgres.");
  }
  const gateway = value("HALYARD_GATEWAY") ?? "built-in";
  if (gateway !== "built-in" && gateway !== "proxy")
    problems.add("HALYARD_GATEWAY must be built-in or proxy.");
  const home = resolve(value("HALYARD_HOME") ?? join(projectDir, ".halyard"));
  const defaultMode = value("NODE_ENV") === "production" ? "production" : "development";
  const settings: Settings = {
    projectDir,
    home,
    cacheDir: chooseCacheDir(home),
    port: Number(value("PORT") ?? 8080),
    gateway: gateway === "proxy" ? "proxy" : "built-in",
    mode: (value("HALYARD_MODE") as Mode | undefined) ?? defaultMode,
    natsUrl: value("NATS_URL"),
    postgresUrl,
    operatorToken: value("OPERATOR_TOKEN"),
    startedByNpm: value("npm_lifecycle_event") !== undefined,
    ofProcesses,
  };
  return problems.size > 0 ? { ok: false, problems: [...problems] } : { ok: true, settings };
}

/** Returns the project's cache, which all homes share, or one in the home if the project is not writable. */
function chooseCacheDir(home: string): string {
  const ofProject = join(projectDir, ".cache");
  try {
    accessSync(existsSync(ofProject) ? ofProject : projectDir, constants.W_OK);
    return ofProject;
  } catch (error) {
    if (hasCode(error, "EACCES", "EROFS")) return join(home, "cache");
    throw error;
  }
}

/** Variables whose values the launcher replaces for all processes. It neither checks nor passes on what is given. */
const replaced =
  /^(?:HOST|METRICS_PORT|POSTGRES_URL|OPERATOR_TOKEN_DIGEST|(?:\w+_)?SIGNING_\w+|SNAPSHOT_CACHE_FILE|STREAM_TOKEN_SECRET|WEBHOOK_SECRET_KEYS|WEBHOOK_ALLOW_PRIVATE_TARGETS|DASHBOARD_DIR|UPSTREAM_\w+)$/;

/**
 * Reads the other variables of each process's schema, from the environment or from their files. The problems are those
 * that the process would report, so that a mistake ends the start before the databases start. Without `NATS_URL`, the server is the launcher's, with its logins.
 */
async function readPassedOn(value: Read, problems: Set<string>): Promise<Settings["ofProcesses"]> {
  const ofProcesses: Partial<Record<ProcessName, Record<string, string>>> = {};
  for (const [name, directory] of Object.entries(programDirs)) {
    const module = await import(join(projectDir, directory, "src/config.ts"));
    const schema: z.ZodObject = module.configSchema;
    const given: Record<string, string> = {};
    for (const variable of Object.keys(schema.shape)) {
      const isOfLauncher = variable.startsWith("NATS_") && value("NATS_URL") === undefined;
      const text = isOfLauncher || replaced.test(variable) ? undefined : value(variable);
      if (text !== undefined) given[variable] = text;
    }
    for (const problem of problemsOf(schema, given)) problems.add(problem);
    ofProcesses[name as ProcessName] = given;
  }
  return ofProcesses as Settings["ofProcesses"];
}

function problemsOf(schema: z.ZodObject, given: Record<string, string>): readonly string[] {
  try {
    const names: Record<string, true> = {};
    for (const name of Object.keys(given)) names[name] = true;
    readEnvironment(schema.pick(names), given);
    return [];
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
    throw error;
  }
}
