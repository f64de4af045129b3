import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { programSearchPath } from "./config.ts";
import { fetchDebianPackage, locateDebianTools } from "./debian-package.ts";
import { hasCode } from "./files.ts";
import { natsServerAdvice } from "./programs.ts";
import { StartError } from "./start-error.ts";

/** First version with direct gets and named consumers, which followers of the snapshot need. */
const OLDEST_VERSION = { major: 2, minor: 9 };

/** Time-out of `--version`, which usually takes milliseconds. */
const VERSION_TIMEOUT_MS = 10_000;

type FindNatsServerOptions = {
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
export async function findNatsServer(options: FindNatsServerOptions): Promise<string> {
  const searchPath = options.searchPath ?? programSearchPath();
  const unpacked = join(options.cacheDir, "nats-server");
  const directories = searchPath.split(delimiter).filter((directory) => directory !== "");
  const candidates = [...directories, join(unpacked, "usr/sbin"), join(unpacked, "usr/bin")];
  const installed = await lookIn(candidates);
  if (installed.usable !== undefined) return installed.usable;
  const tools = locateDebianTools(searchPath);
  if (tools === undefined) throw missing({ searchPath, ...installed });
  const { cacheDir, onStep = () => {} } = options;
  try {
    await fetchDebianPackage("nats-server", tools, { cacheDir, directory: unpacked, onStep });
  } catch (cause) {
    throw missing({ searchPath, ...installed, cause });
  }
  const fetched = await lookIn(candidates);
  if (fetched.usable !== undefined) return fetched.usable;
  throw missing({ searchPath, ...fetched });
}

/** Returns the version of a binary; undefined if it does not run, for example because it is for another processor. */
export async function natsServerVersion(binary: string): Promise<string | undefined> {
  try {
    const options = { timeout: VERSION_TIMEOUT_MS, env: {} };
    const { stdout } = await promisify(execFile)(binary, ["--version"], options);
    return /v(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  } catch {
    return undefined;
  }
}

/** Returns the first usable server, or the reason for each server why it cannot be used. */
async function lookIn(
  directories: string[],
): Promise<{ usable: string | undefined; problems: string[] }> {
  const problems = new Set<string>();
  for (const binary of directories.map((directory) => join(directory, "nats-server"))) {
    if (!isExecutable(binary)) continue;
    const version = await natsServerVersion(binary);
    if (version === undefined) problems.add(`${binary} does not run.`);
    else if (isNewEnough(version)) return { usable: binary, problems: [] };
    else problems.add(`${binary} is version ${version}, which is too old.`);
  }
  return { usable: undefined, problems: [...problems] };
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major === OLDEST_VERSION.major
    ? minor >= OLDEST_VERSION.minor
    : major > OLDEST_VERSION.major;
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

function missing(options: { searchPath: string; problems: string[]; cause?: unknown }): StartError {
  const { searchPath, problems, cause } = options;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new StartError(
    [
      `Halyard needs nats-server ${OLDEST_VERSION.major}.${OLDEST_VERSION.minor} or later, and found none.`,
      ...problems,
      ...(cause === undefined ? [] : [`Fetching it failed: ${reason}`]),
      natsServerAdvice({ searchPath, platform: process.platform }),
    ].join("\n"),
    { cause },
  );
}
