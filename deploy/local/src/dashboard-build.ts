import { createHash, randomUUID } from "node:crypto";
import {
  type Dirent,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { type BackgroundProcess, renameUnlessPresent } from "@halyard/local-backends";
import { runProgram } from "./run-program.ts";

/**
 * A build of the dashboard: a folder of the cache, named after the hash of its sources. A rename makes it appear
 * complete. Processes can therefore build at the same time, and no process reads half a build.
 */
type DashboardBuild = { folder: string; isNew: boolean };

type BuildOptions = {
  projectDir?: string;
  cacheDir?: string;
  logsDir?: string;
  onStarted?: (vite: BackgroundProcess) => void;
};

/** Number of builds to keep. A running Halyard may restart the process that serves an older build. */
const keptBuilds = 10;

const dashboard = "services/dashboard";
const thisProject = join(import.meta.dirname, "../../..");

/**
 * Builds the dashboard, unless it was built from the same sources and packages before.
 *
 * @throws StartError with the end of the log if the build fails
 */
export async function ensureDashboard(options: BuildOptions = {}): Promise<DashboardBuild> {
  const { projectDir = thisProject, onStarted } = options;
  const { cacheDir = join(projectDir, ".cache"), logsDir = cacheDir } = options;
  const builds = join(cacheDir, "dashboard");
  const folder = join(builds, hashOfSources(projectDir));
  if (existsSync(folder)) return { folder, isNew: false };
  const unfinished = join(builds, `unfinished-${randomUUID()}`);
  mkdirSync(unfinished, { recursive: true });
  try {
    await runProgram(
      { projectDir, logsDir },
      {
        what: "The build of the dashboard",
        program: "node_modules/vite/bin/vite.js",
        // The native loader writes no file beside the configuration. The project may belong to another user.
        args: ["build", "--outDir", unfinished, "--emptyOutDir", "--configLoader", "native"],
        folder: dashboard,
        logName: "dashboard-build.log",
        // The NODE_ENV of a test would select the development versions of packages.
        environment: { NODE_ENV: "production", NO_COLOR: "1" },
        onStarted,
      },
    );
    renameUnlessPresent(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  removeOldBuilds(builds);
  return { folder, isNew: true };
}

function hashOfSources(projectDir: string): string {
  const hash = createHash("sha256");
  const exclude = ({ name }: Dirent) => /^(?:dist|node_modules|test)$/.test(name);
  const cwd = join(projectDir, dashboard);
  const paths = globSync("**", { cwd, withFileTypes: true, exclude })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  for (const path of [join(projectDir, "package-lock.json"), ...paths.toSorted()]) {
    const content = readFileSync(path);
    // With its length, no content can be mistaken for the next file.
    hash.update(`${path.slice(projectDir.length)} ${content.length}\n`).update(content);
  }
  return hash.digest("hex").slice(0, 32);
}

function removeOldBuilds(builds: string): void {
  const byAge = readdirSync(builds)
    .map((name) => join(builds, name))
    .map((path) => ({ path, at: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .toSorted((one, other) => other.at - one.at);
  for (const { path } of byAge.slice(keptBuilds)) rmSync(path, { recursive: true, force: true });
}
