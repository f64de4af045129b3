import { spawnSync } from "node:child_process";
import { existsSync, globSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { projectRoot } from "./project-root.ts";
import { executablePath } from "./start-chromium.ts";

/** A program, or a right, that some system tests need and that npm does not install with the project. */
export type Program = {
  name: string;
  /** Command that installs it. */
  advice: string;
  isMissing: boolean;
  /** True if a run with `CI` fails without the program. */
  isRequiredInCi: boolean;
};

const nodeVersionsDir = join(projectRoot, "e2e/node-versions");

/** Returns the binary of an older Node.js release. */
export function olderNodeBinary(major: string): string {
  return join(nodeVersionsDir, `node_modules/node-${major}/bin/node`);
}

function isOpenToAll(directory: string): boolean {
  const isOpen = (statSync(directory).mode & 0o005) === 0o005;
  return isOpen && (dirname(directory) === directory || isOpenToAll(dirname(directory)));
}

/** Directory of the newest PostgreSQL that Debian's packages have installed. The one of npm has no `pg_dump`. */
export const machinePostgresDir = globSync("/usr/lib/postgresql/*/bin")
  .filter((directory) => existsSync(join(directory, "postgres")))
  .sort()
  .at(-1);

/** Tests that need a missing program are skipped. The reporter of `npm run test:system` names the program. */
export const programs = {
  chromium: {
    name: "Chromium",
    advice: "apt-get install chromium",
    isMissing: !existsSync(executablePath),
    isRequiredInCi: true,
  },
  olderNode: {
    name: "older releases of Node.js",
    advice: "npm ci --prefix e2e/node-versions",
    isMissing: !["20", "22"].every((major) => existsSync(olderNodeBinary(major))),
    isRequiredInCi: true,
  },
  python: {
    name: "Python 3 with venv",
    advice: "apt-get install python3-venv",
    get isMissing() {
      return spawnSync("python3", ["-c", "import ensurepip, venv"]).status !== 0;
    },
    isRequiredInCi: true,
  },
  postgres: {
    name: "PostgreSQL with pg_dump",
    advice: "apt-get install postgresql",
    isMissing: machinePostgresDir === undefined,
    isRequiredInCi: false,
  },
  systemdAnalyze: {
    name: "systemd-analyze",
    advice: "apt-get install systemd",
    get isMissing() {
      return spawnSync("systemd-analyze", ["--version"]).status !== 0;
    },
    isRequiredInCi: false,
  },
  docker: {
    name: "the walk in containers, which needs a Docker engine",
    advice: "TEST_BACKENDS=containers npm run test:system",
    isMissing: process.env.TEST_BACKENDS !== "containers",
    isRequiredInCi: false,
  },
  severalUsers: {
    name: "the rights of root in a checkout that every user can read, to start as several users",
    advice: "sudo npm run test:system",
    isMissing: process.getuid?.() !== 0 || !isOpenToAll(projectRoot),
    isRequiredInCi: false,
  },
} satisfies Record<string, Program>;
