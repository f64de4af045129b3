import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
  "node_modules/react",
  "node_modules/react-dom",
  "node_modules/scheduler",
];

/** A built package: its manifest and the paths in its tarball. */
type PackedPackage = { name: string; filename: string; files: { path: string }[] };

export type InstalledPackages = {
  /** A project with the tarballs of all packages installed, and with the programs of `consumer`. */
  folder: string;
  packed: readonly PackedPackage[];
  remove(): void;
};

/** Builds the packages by `npm pack` and installs them into an empty project, as an application would. */
export async function installPackages(): Promise<InstalledPackages> {
  const folder = mkdtempSync(join(tmpdir(), "halyard-packages-"));
  // One after another, because a package also builds those that it refers to.
  const packed: PackedPackage[] = [];
  for (const name of packageNames) packed.push(...(await pack(folder, `clients/${name}`, ["."])));
  const others = await pack(folder, ".", [
    "--ignore-scripts",
    ...thirdParties.map((folder) => `./${folder}`),
  ]);
  await npm(folder, "init", "--yes");
  const tarballs = [...packed, ...others].map(({ filename }) => `./${filename}`);
  await npm(folder, "install", "--offline", "--no-audit", "--no-fund", ...tarballs);
  cpSync(new URL("consumer/", import.meta.url), folder, { recursive: true });
  // The types of Node.js and React. An application installs them from the registry.
  symlinkSync(join(projectRoot, "node_modules/@types"), join(folder, "node_modules/@types"));
  return { folder, packed, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

async function pack(destination: string, cwd: string, args: string[]): Promise<PackedPackage[]> {
  const output = await npm(
    join(projectRoot, cwd),
    "pack",
    "--json",
    "--pack-destination",
    destination,
    ...args,
  );
  // The output of `prepack` precedes the JSON.
  return JSON.parse(output.slice(output.indexOf("[\n"))) as PackedPackage[];
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
