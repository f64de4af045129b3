import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { hasCode, StartError } from "@halyard/local-backends";
import type { DemoCredentials } from "./credentials.ts";
import { writePrivateFile } from "./private-file.ts";
import type { ServiceProcess } from "./service-process.ts";

/** Mode of a new home. If root starts the launcher, PostgreSQL runs as another user and must reach its data. */
const openToPass = 0o711;

/** Files and directories that a start writes. PostgreSQL checks its own data when it starts. */
const written = ["credentials.json", "logs", "nats", "sdk-edge"];

/** Creates the home if it does not exist, and checks that this user can write to it and to its content. */
export function makeHome(home: string): void {
  try {
    makeDirectory(home);
    // The dot makes the check fail for a file.
    accessSync(`${home}/.`, constants.W_OK | constants.X_OK);
    for (const path of written.map((name) => join(home, name))) {
      if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
    }
  } catch (cause) {
    const isOfAnother = existsSync(join(home, "credentials.json"));
    throw new StartError(
      `Could not write to the directory ${home} (${cause instanceof Error ? cause.message : cause}). ` +
        (isOfAnother
          ? `Its files belong to another user. Take ownership of them: sudo chown -R "$(id -un)" '${home}'`
          : "Choose another directory: HALYARD_HOME=~/halyard npm start"),
      { cause },
    );
  }
}

/** `mkdirSync` with `recursive` never returns if the file system returns ENOENT, as /proc does. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: openToPass });
  } catch (error) {
    // Another launcher has created it in the meantime.
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

/**
 * Writes `demo.json`, from which programs read the addresses and keys of a run. It exists from the time when everything
 * is ready until the run ends. A restart of a service rewrites it with the new process id. In production mode it has no
 * demo organization.
 */
export function writeDemoFile(
  home: string,
  content: {
    baseUrl: string;
    operatorToken: string;
    demo: DemoCredentials | undefined;
    services: ServiceProcess[];
  },
): void {
  const { user_id: _, ...demo } = content.demo ?? { user_id: undefined };
  const services = content.services.map(({ name, url, metricsUrl, pid }) => [
    name,
    { url, metrics_url: metricsUrl, pid },
  ]);
  writePrivateFile(demoFileIn(home), {
    base_url: content.baseUrl,
    operator_token: content.operatorToken,
    ...demo,
    services: Object.fromEntries(services),
  });
}

/** Writes the variables of `npm run doctor`. Like `demo.json`, the file exists while everything runs. */
export function writeDoctorFile(home: string, variables: Readonly<Record<string, string>>): void {
  writePrivateFile(doctorFileIn(home), variables);
}

export function doctorFileIn(home: string): string {
  return join(home, "doctor.json");
}

export function demoFileIn(home: string): string {
  return join(home, "demo.json");
}
