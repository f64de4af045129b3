import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { programSearchPath } from "./config.ts";
import { fetchDebianPackage, hasDebianTools } from "./debian-package.ts";
import { NatsServerMissingError } from "./errors.ts";
import { natsServerAdvice } from "./nats-server-advice.ts";
import { hasCode } from "./process-identity.ts";

/** Brought direct reads of streams and consumers with a name, which following the snapshot needs. */
const OLDEST_VERSION = { major: 2, minor: 9 };

/** A healthy binary answers its version in milliseconds. */
const VERSION_PATIENCE_MS = 10_000;

export type FindNatsServerOptions = {
  /** A fetched server is unpacked here and found again by the next start. */
  cacheDir: string;
  /** Directories to look in, separated as in PATH; default: PATH and the system's own. */
  searchPath?: string;
  onStep?: (text: string) => void;
};

/** Finds a nats-server on the path or in the cache, or fetches it into the cache without root. */
export async function findNatsServer(options: FindNatsServerOptions): Promise<string> {
  const searchPath = options.searchPath ?? programSearchPath();
  const unpacked = join(options.cacheDir, "nats-server");
  const directories = searchPath.split(delimiter).filter((directory) => directory !== "");
  const places = [...directories, join(unpacked, "usr/sbin"), join(unpacked, "usr/bin")];
  const found = await firstUsable(places);
  if (found !== undefined) return found;
  const unusable = await describeUnusable(places);
  if (!hasDebianTools(searchPath)) throw missing({ searchPath, unusable });
  try {
    await fetchDebianPackage("nats-server", { ...options, searchPath, directory: unpacked });
  } catch (cause) {
    throw missing({ searchPath, unusable, cause });
  }
  const fetched = await firstUsable(places);
  if (fetched !== undefined) return fetched;
  throw missing({ searchPath, unusable: await describeUnusable(places) });
}

/** The version that the binary names; undefined when it does not run. */
export async function natsServerVersion(binary: string): Promise<string | undefined> {
  try {
    const options = { timeout: VERSION_PATIENCE_MS, env: {} };
    const { stdout } = await promisify(execFile)(binary, ["--version"], options);
    return /v(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  } catch {
    // A binary that does not run, say one for another processor, is as good as none.
    return undefined;
  }
}

async function firstUsable(directories: string[]): Promise<string | undefined> {
  for (const binary of binariesIn(directories)) {
    if (isNewEnough(await natsServerVersion(binary))) return binary;
  }
  return undefined;
}

/** Sentences about each nats-server that is installed and cannot be used. */
async function describeUnusable(directories: string[]): Promise<string[]> {
  const binaries = [...new Set(binariesIn(directories))];
  return Promise.all(
    binaries.map(async (binary) => {
      const version = await natsServerVersion(binary);
      return version === undefined
        ? `${binary} does not run.`
        : `${binary} is version ${version}, which is too old.`;
    }),
  );
}

function binariesIn(directories: string[]): string[] {
  return directories.map((directory) => join(directory, "nats-server")).filter(isExecutable);
}

function isNewEnough(version: string | undefined): boolean {
  const [major = 0, minor = 0] = (version ?? "").split(".").map(Number);
  if (major !== OLDEST_VERSION.major) return major > OLDEST_VERSION.major;
  return minor >= OLDEST_VERSION.minor;
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

function missing(options: {
  searchPath: string;
  unusable: string[];
  cause?: unknown;
}): NatsServerMissingError {
  const { searchPath, unusable, cause } = options;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new NatsServerMissingError(
    [
      `Halyard needs nats-server ${OLDEST_VERSION.major}.${OLDEST_VERSION.minor} or later, and found none.`,
      ...unusable,
      ...(cause === undefined ? [] : [`Fetching it failed: ${reason}`]),
      natsServerAdvice({ searchPath, platform: process.platform }),
    ].join("\n"),
    { cause },
  );
}
