import { execFile } from "node:child_process";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { olderNodeBinary, programs } from "@halyard/testing/programs";
import { describe } from "@jest/globals";

export const projectRoot = fileURLToPath(new URL("../../../", import.meta.url));

const run = promisify(execFile);

/** The folders of `clients`, each of which is a package. */
export const packageNames = [
  "evaluation",
  "server-sdk",
  "openfeature-server",
  "browser-sdk",
  "openfeature-web",
  "react",
  "conformance",
] as const;

/** The installed dependencies and peer dependencies from others, so that no network is needed. */
const thirdParties = [
  "node_modules/re2js",
  "clients/server-sdk/node_modules/eventsource-parser",
  "node_modules/@openfeature/core",
  "node_modules/@openfeature/server-sdk",
  "node_modules/@openfeature/web-sdk",
  // Programs of the pages use them.
  "node_modules/@opentelemetry/api",
  "node_modules/@opentelemetry/core",
  "node_modules/@opentelemetry/resources",
  "node_modules/@opentelemetry/sdk-logs",
  "node_modules/@opentelemetry/semantic-conventions",
  "node_modules/react",
  "node_modules/react-dom",
  "node_modules/scheduler",
];

export type InstalledPackages = {
  /** A project with the tarballs of all packages installed, and with the programs of `consumer`. */
  folder: string;
  /** The command that `npm run pack:clients` prints for each package. */
  commands: ReadonlyMap<string, string>;
  /** Returns the tarball of a package. */
  tarballOf(name: string): string;
  /** Returns the paths in the tarball of a package. */
  pathsOf(name: string): string[];
  /** Runs a printed command in an empty project, with the packages of others from `node_modules`. */
  installAlone(command: string): Promise<string>;
  remove(): void;
};

/** Runs `npm run pack:clients`, and installs all packages into an empty project, as an application would. */
export async function installPackages(): Promise<InstalledPackages> {
  const root = mkdtempSync(join(tmpdir(), "halyard-packages-"));
  const [folder, tarballs, others] = ["application", "tarballs", "others"].map((name) =>
    join(root, name),
  ) as [string, string, string];
  const printed = await npm(projectRoot, "run", "--silent", "pack:clients", "--", tarballs);
  mkdirSync(others);
  const sources = thirdParties.map((path) => `./${path}`);
  await npm(projectRoot, "pack", "--ignore-scripts", "--pack-destination", others, ...sources);
  const othersTarballs = globSync("*.tgz", { cwd: others }).map((file) => join(others, file));

  async function installInto(project: string, given: string[]): Promise<void> {
    mkdirSync(project);
    await npm(project, "init", "--yes");
    await npm(project, "install", "--offline", "--no-audit", "--no-fund", ...given);
  }

  const packages = globSync("*.tgz", { cwd: tarballs }).map((file) => join(tarballs, file));
  await installInto(folder, [...packages, ...othersTarballs]);
  cpSync(new URL("consumer/", import.meta.url), folder, { recursive: true });
  // The types of Node.js and React. An application installs them from the registry.
  symlinkSync(join(projectRoot, "node_modules/@types"), join(folder, "node_modules/@types"));
  return {
    folder,
    commands: new Map(
      [...printed.matchAll(/^# (\S+)\n(npm install .+)$/gm)].map(([, name = "", command = ""]) => [
        name,
        command,
      ]),
    ),
    tarballOf: (name) => join(tarballs, `halyard-${name}-${readManifest(".").version}.tgz`),
    pathsOf: (name) =>
      globSync("**", { cwd: join(folder, "node_modules/@halyard", name), withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) =>
          relative(join(folder, "node_modules/@halyard", name), join(entry.parentPath, entry.name)),
        ),
    async installAlone(command) {
      const project = mkdtempSync(join(root, "alone-"));
      const named = command.split(" ").filter((argument) => argument.endsWith(".tgz"));
      await installInto(join(project, "application"), [...named, ...othersTarballs]);
      return join(project, "application");
    },
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** Runs npm without the settings that `npm test` passes on, such as the folder of its own project. */
async function npm(cwd: string, ...args: string[]): Promise<string> {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  const { stdout } = await run("npm", args, { cwd, env: { PATH, HOME, NODE_COMPILE_CACHE } });
  return stdout;
}

/** Runs a program of the project. */
export async function runIn(folder: string, command: string, ...args: string[]): Promise<string> {
  const { stdout } = await run(command, args, { cwd: folder, env: { PATH: process.env.PATH } });
  return stdout;
}

/** The Node.js versions that the packages support. The tests with older ones are skipped while these are missing. */
export const nodeVersions = ["20", "22", "24"].map((version) => {
  const binary = version === "24" ? process.execPath : olderNodeBinary(version);
  const isTested = version === "24" || !programs.olderNode.isMissing;
  return { version, binary, describe: isTested ? describe : describe.skip };
});

/** Reads a manifest of this repository. */
export function readManifest(folder: string): { [member: string]: unknown } {
  return JSON.parse(readFileSync(join(projectRoot, folder, "package.json"), "utf8"));
}
