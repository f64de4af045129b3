import { accessSync, constants, existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { ExampleIds } from "@halyard/contracts";
import { hasCode, type Reaper, StartError } from "@halyard/local-backends";
import type { DemoCredentials } from "./credentials.ts";
import { writePrivateFile } from "./private-file.ts";
import type { ServiceProcess } from "./service-process.ts";

/** PostgreSQL's own user must be able to pass through to its data when root starts us. */
const openToPass = 0o711;

/** Files and directories that a start writes to. PostgreSQL's start checks PostgreSQL's data. */
const written = ["credentials.json", "logs", "nats", "sdk-edge"];

/** Creates the home unless it exists, and checks that this user can write to it and to what it contains. */
export function makeHome(home: string): void {
  try {
    makeDirectory(home);
    // The dot makes a file fail, too.
    accessSync(`${home}/.`, constants.W_OK | constants.X_OK);
    for (const path of written.map((name) => join(home, name))) {
      if (existsSync(path)) accessSync(path, constants.R_OK | constants.W_OK);
    }
  } catch (cause) {
    const isOfAnother = existsSync(join(home, "credentials.json"));
    throw new StartError(
      `The directory ${home} cannot be written to (${cause instanceof Error ? cause.message : cause}). ` +
        (isOfAnother
          ? `It contains the data of another user's start. Make them yours: sudo chown -R "$(id -un)" '${home}'`
          : "Choose another one: HALYARD_HOME=~/halyard npm start"),
      { cause },
    );
  }
}

/** `mkdirSync` with `recursive` never returns where the file system answers ENOENT, as /proc does. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: openToPass });
  } catch (error) {
    // Another start has created it meanwhile.
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

/**
 * `demo.json` tells programs how to reach a run. It appears when everything is ready, disappears when
 * the run ends, and is rewritten with the new process id when a service was started again. In production
 * mode it has no demo organization.
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

export function removeDemoFile(home: string): void {
  rmSync(demoFileIn(home), { force: true });
}

/** Also when this process is killed: the file holds keys, and ids of processes that end then. */
export function removeDemoFileWithUs(home: string, reaper: Reaper): void {
  reaper.removeAtOnce(demoFileIn(home));
}

function demoFileIn(home: string): string {
  return join(home, "demo.json");
}

/** The demo's ids without its keys. The gateway shows them as the examples of its documentation. */
export function exampleIdsFileIn(home: string): string {
  return join(home, "example-ids.json");
}

export function writeExampleIds(home: string, demo: DemoCredentials): void {
  const ids: ExampleIds = {
    organizationId: demo.organization_id,
    userId: demo.user_id,
    projectId: demo.project_id,
    environmentId: demo.environment_id,
  };
  writePrivateFile(exampleIdsFileIn(home), ids);
}
