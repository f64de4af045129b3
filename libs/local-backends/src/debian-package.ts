import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageToolEnvironment } from "./config.ts";
import { hasCode, lastErrorLine } from "./files.ts";
import { locateProgram } from "./programs.ts";
import { runsAsRoot } from "./system-user.ts";

/** Time-out of apt-get. A slow mirror needs minutes for its lists, but a mirror that hangs must not block the start. */
const FETCH_TIMEOUT_MS = 180_000;
const TOOL_OUTPUT_BYTES = 4 * 1024 * 1024;

type Fetch = {
  directory: string;
  cacheDir: string;
  searchPath: string;
  onStep?: (text: string) => void;
};

/** apt-get or dpkg-deb is missing or failed. */
export class DebianPackageError extends Error {
  override name = "DebianPackageError";
}

/**
 * Fetches a package of Debian or Ubuntu and unpacks it into `directory`. apt-get writes only to a private directory, so
 * it needs no root rights and changes nothing in the system. Concurrent starts work in separate directories, and the
 * first to finish renames its own to `directory`.
 */
export async function fetchDebianPackage(name: string, fetch: Fetch): Promise<void> {
  const tools = locateDebianTools(fetch.searchPath);
  if (tools === undefined) {
    throw new DebianPackageError("apt-get or dpkg-deb is not installed");
  }
  mkdirSync(fetch.cacheDir, { recursive: true });
  const workshop = mkdtempSync(join(fetch.cacheDir, `${name}-`));
  try {
    fetch.onStep?.(`fetching ${name} with apt-get, into ${fetch.cacheDir} only`);
    await download(name, { tools, workshop, onStep: fetch.onStep });
    const archive = readdirSync(workshop).find((file) => file.endsWith(".deb"));
    if (archive === undefined)
      throw new DebianPackageError(`apt-get downloaded no package ${name}`);
    const unpacked = join(workshop, "unpacked");
    await run(tools.dpkgDeb, ["-x", join(workshop, archive), unpacked], workshop);
    putInPlace(unpacked, fetch.directory);
  } finally {
    rmSync(workshop, { recursive: true, force: true });
  }
}

type Tools = { aptGet: string; dpkgDeb: string };

/** Returns the tools that fetch and unpack packages of Debian; undefined if one is missing. */
export function locateDebianTools(searchPath: string): Tools | undefined {
  const aptGet = locateProgram("apt-get", searchPath);
  const dpkgDeb = locateProgram("dpkg-deb", searchPath);
  return aptGet === undefined || dpkgDeb === undefined ? undefined : { aptGet, dpkgDeb };
}

async function download(
  name: string,
  job: { tools: Tools; workshop: string; onStep: ((text: string) => void) | undefined },
): Promise<void> {
  const { tools, workshop } = job;
  mkdirSync(join(workshop, "cache/archives/partial"), { recursive: true });
  mkdirSync(join(workshop, "lists/partial"), { recursive: true });
  const settings = [
    `Dir::Cache=${join(workshop, "cache")}`,
    "Debug::NoLocking=true",
    // The unprivileged user of apt could not write to the private directory.
    ...(runsAsRoot() ? ["APT::Sandbox::User=root"] : []),
  ];
  const privateLists = [`Dir::State::Lists=${join(workshop, "lists")}`, "Acquire::Languages=none"];
  try {
    await run(tools.aptGet, ["download", name, ...asOptions(settings)], workshop);
  } catch (error) {
    if (!(error instanceof DebianPackageError)) throw error;
    // The system's package lists may be missing or too old, so private ones are fetched.
    job.onStep?.("fetching the package lists");
    const all = asOptions([...settings, ...privateLists]);
    await run(tools.aptGet, ["update", ...all], workshop);
    await run(tools.aptGet, ["download", name, ...all], workshop);
  }
}

function asOptions(settings: string[]): string[] {
  return settings.flatMap((setting) => ["-o", setting]);
}

async function run(tool: string, args: string[], workingDirectory: string): Promise<void> {
  try {
    await promisify(execFile)(tool, args, {
      cwd: workingDirectory,
      env: packageToolEnvironment(),
      timeout: FETCH_TIMEOUT_MS,
      maxBuffer: TOOL_OUTPUT_BYTES,
    });
  } catch (cause) {
    throw new DebianPackageError(`${tool} ${args[0]}: ${lastErrorLine(cause)}`, { cause });
  }
}

function putInPlace(unpacked: string, directory: string): void {
  try {
    renameSync(unpacked, directory);
  } catch (error) {
    // Another start has installed the same package first.
    if (!hasCode(error, "ENOTEMPTY", "EEXIST")) throw error;
  }
}
