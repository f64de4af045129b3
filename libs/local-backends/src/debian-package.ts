import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageToolEnvironment } from "./config.ts";
import { lastErrorLine, renameUnlessPresent } from "./files.ts";
import { locateProgram } from "./programs.ts";
import { runsAsRoot } from "./system-user.ts";

/** Time-out of apt-get. A slow mirror needs minutes for its lists, but a mirror that hangs must not block the start. */
const FETCH_TIMEOUT_MS = 180_000;
const TOOL_OUTPUT_BYTES = 4 * 1024 * 1024;

type Fetch = {
  directory: string;
  cacheDir: string;
  withLibraries: boolean;
  onStep: (text: string) => void;
};

type Tools = { aptGet: string; dpkgDeb: string };

/** Returns the tools that fetch and unpack packages of Debian; undefined if one is missing. */
export function locateDebianTools(searchPath: string): Tools | undefined {
  const aptGet = locateProgram("apt-get", searchPath);
  const dpkgDeb = locateProgram("dpkg-deb", searchPath);
  return aptGet === undefined || dpkgDeb === undefined ? undefined : { aptGet, dpkgDeb };
}

/**
 * Fetches a package of Debian or Ubuntu and unpacks it into `directory`, if asked with the libraries that the system
 * lacks. apt-get writes only to a private directory, so it needs no root rights and changes nothing in the system. Concurrent starts work in separate directories, and the
 * first to finish renames its own to `directory`.
 */
export async function fetchDebianPackage(name: string, tools: Tools, fetch: Fetch): Promise<void> {
  const { directory, cacheDir, withLibraries, onStep } = fetch;
  mkdirSync(cacheDir, { recursive: true });
  const workshop = mkdtempSync(join(cacheDir, `${name}-`));
  const run = (tool: string, ...args: string[]) => runTool(tool, args, workshop);
  try {
    onStep(`fetching ${name} with apt-get, into ${cacheDir} only`);
    const { options, privateLists } = aptOptions(workshop);
    const download = async (lists: string[]) => {
      const aptGet = (...args: string[]) => run(tools.aptGet, ...args, ...options, ...lists);
      await aptGet("download", ...(withLibraries ? await missingPackages(name, aptGet) : [name]));
    };
    await download([]).catch(async () => {
      // The system's package lists may be missing or too old, so private ones are fetched.
      onStep("fetching the package lists");
      await run(tools.aptGet, "update", ...options, ...privateLists);
      await download(privateLists);
    });
    const archives = readdirSync(workshop).filter((file) => file.endsWith(".deb"));
    if (archives.length === 0) throw new Error(`apt-get downloaded no package ${name}`);
    for (const archive of archives)
      await run(tools.dpkgDeb, "-x", join(workshop, archive), join(workshop, "unpacked"));
    renameUnlessPresent(join(workshop, "unpacked"), directory);
  } finally {
    rmSync(workshop, { recursive: true, force: true });
  }
}

/**
 * Returns the names of the packages that apt-get would install for a package. It prints a line for each of them that
 * contains the file, such as `nats-server_2.9.10-1_amd64.deb`.
 */
async function missingPackages(
  name: string,
  aptGet: (...args: string[]) => Promise<string>,
): Promise<string[]> {
  const printed = await aptGet("install", "--print-uris", "--no-install-recommends", "-y", name);
  const files = printed.matchAll(/^'\S+' (?<name>[^\s_]+)_\S+\.deb /gm);
  return [...new Set([name, ...Array.from(files, ({ groups }) => groups?.name ?? name)])];
}

function aptOptions(workshop: string): { options: string[]; privateLists: string[] } {
  mkdirSync(join(workshop, "cache/archives/partial"), { recursive: true });
  mkdirSync(join(workshop, "lists/partial"), { recursive: true });
  const settings = [`Dir::Cache=${join(workshop, "cache")}`, "Debug::NoLocking=true"];
  // The unprivileged user of apt could not write to the private directory.
  if (runsAsRoot()) settings.push("APT::Sandbox::User=root");
  const lists = [`Dir::State::Lists=${join(workshop, "lists")}`, "Acquire::Languages=none"];
  const asOptions = (all: string[]) => all.flatMap((setting) => ["-o", setting]);
  return { options: asOptions(settings), privateLists: asOptions(lists) };
}

/** Returns what the tool has printed. */
async function runTool(tool: string, args: string[], workingDirectory: string): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(tool, args, {
      cwd: workingDirectory,
      env: packageToolEnvironment(),
      timeout: FETCH_TIMEOUT_MS,
      maxBuffer: TOOL_OUTPUT_BYTES,
    });
    return stdout;
  } catch (cause) {
    throw new Error(`${tool} ${args[0]}: ${lastErrorLine(cause)}`, { cause });
  }
}
