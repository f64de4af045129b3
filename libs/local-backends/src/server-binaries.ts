import { execFile } from "node:child_process";
import { accessSync, constants, globSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { programSearchPath } from "./config.ts";
import { fetchDebianPackage, locateDebianTools } from "./debian-package.ts";
import { hasCode } from "./files.ts";
import { haproxyAdvice, natsServerAdvice, packageAdvice } from "./programs.ts";
import { StartError } from "./start-error.ts";

/** A server that Halyard does not contain. Its package has the same name. */
type Server = {
  name: string;
  oldest: { major: number; minor: number };
  versionOption: string;
  /** The package needs libraries that a system may lack. */
  withLibraries: boolean;
  advice: (machine: { searchPath: string; platform: NodeJS.Platform }) => string;
};

/** The oldest version is the first one with direct gets and named consumers, which followers of the snapshot need. */
const natsServer: Server = {
  name: "nats-server",
  oldest: { major: 2, minor: 9 },
  versionOption: "--version",
  withLibraries: false,
  advice: natsServerAdvice,
};

/** The generated configuration contains no directive that is newer. */
const haproxy: Server = {
  name: "haproxy",
  oldest: { major: 2, minor: 6 },
  versionOption: "-v",
  withLibraries: true,
  advice: haproxyAdvice,
};

/** The first version that knows the functions in the rules. promtool is beside it. */
const prometheus: Server = {
  name: "prometheus",
  oldest: { major: 2, minor: 42 },
  versionOption: "--version",
  withLibraries: false,
  advice: (machine) => packageAdvice("prometheus", machine),
};

/** Time-out of a version check, which usually takes milliseconds. */
const VERSION_TIMEOUT_MS = 10_000;

type FindOptions = {
  /** Directory into which a fetched server is unpacked. Later starts find it there. */
  cacheDir: string;
  /** Directories to search, in the form of PATH. By default, PATH and the system directories. */
  searchPath?: string;
  onStep?: (text: string) => void;
};

/**
 * Finds a nats-server on the path or in the cache, or fetches it into the cache without root rights.
 *
 * @throws StartError with the servers that cannot be used and the ways to install one
 */
export const findNatsServer = (options: FindOptions): Promise<string> => find(natsServer, options);

/** Like `findNatsServer`, for HAProxy. A fetched one needs the variables of `libraryVariables`. */
export const findHaproxy = (options: FindOptions): Promise<string> => find(haproxy, options);

/** Like `findNatsServer`, for Prometheus. */
export const findPrometheus = (options: FindOptions): Promise<string> => find(prometheus, options);

/** Returns the variables with which a fetched program finds its libraries. */
export function libraryVariables(binary: string): Record<string, string> {
  const libraries = globSync(join(dirname(binary), "../lib/*-linux-*"));
  return libraries.length === 0 ? {} : { LD_LIBRARY_PATH: libraries.join(delimiter) };
}

export const natsServerVersion = (binary: string) => versionOf(natsServer, binary);

async function find(server: Server, options: FindOptions): Promise<string> {
  const { name, withLibraries } = server;
  const searchPath = options.searchPath ?? programSearchPath();
  const unpacked = join(options.cacheDir, name);
  const directories = searchPath.split(delimiter).filter((directory) => directory !== "");
  const candidates = [...directories, join(unpacked, "usr/sbin"), join(unpacked, "usr/bin")];
  const installed = await lookIn(candidates, server);
  if (installed.usable !== undefined) return installed.usable;
  const tools = locateDebianTools(searchPath);
  if (tools === undefined) throw missing(server, { searchPath, ...installed });
  const { cacheDir, onStep = () => {} } = options;
  try {
    const fetch = { cacheDir, directory: unpacked, withLibraries, onStep };
    await fetchDebianPackage(name, tools, fetch);
  } catch (cause) {
    throw missing(server, { searchPath, ...installed, cause });
  }
  const fetched = await lookIn(candidates, server);
  if (fetched.usable !== undefined) return fetched.usable;
  throw missing(server, { searchPath, ...fetched });
}

/** Returns the version of a binary; undefined if it does not run, for example because it is for another processor. */
async function versionOf({ versionOption }: Server, binary: string): Promise<string | undefined> {
  try {
    const options = { timeout: VERSION_TIMEOUT_MS, env: libraryVariables(binary) };
    const { stdout } = await promisify(execFile)(binary, [versionOption], options);
    return /\bv?(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

/** Returns the first usable server, or the reason for each server why it cannot be used. */
async function lookIn(
  directories: string[],
  server: Server,
): Promise<{ usable: string | undefined; problems: string[] }> {
  const problems = new Set<string>();
  for (const binary of directories.map((directory) => join(directory, server.name))) {
    if (!isExecutable(binary)) continue;
    const version = await versionOf(server, binary);
    if (version === undefined) problems.add(`${binary} does not run.`);
    else if (isNewEnough(version, server)) return { usable: binary, problems: [] };
    else problems.add(`${binary} is version ${version}, which is too old.`);
  }
  return { usable: undefined, problems: [...problems] };
}

function isNewEnough(version: string, { oldest }: Server): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major === oldest.major ? minor >= oldest.minor : major > oldest.major;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT", "EACCES", "ENOTDIR")) return false;
    throw error;
  }
}

function missing(
  { name, oldest, advice }: Server,
  options: { searchPath: string; problems: string[]; cause?: unknown },
): StartError {
  const { searchPath, problems, cause } = options;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StartError(
    [
      `Halyard needs ${name} ${oldest.major}.${oldest.minor} or later, and found none.`,
      ...problems,
      ...(cause === undefined ? [] : [`Fetching it failed: ${reason}`]),
      advice({ searchPath, platform: process.platform }),
    ].join("\n"),
    { cause },
  );
}
