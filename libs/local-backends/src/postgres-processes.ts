import { readdirSync, readlinkSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { hasCode, readIfPresent, unlessAbsent } from "./files.ts";
import { commandLine } from "./process-identity.ts";

/** What PostgreSQL writes into `postmaster.pid`, as far as it matters here. */
export type PostmasterFile = { pid: number; status: string };

export function postmasterFileIn(clusterDir: string): string {
  return join(clusterDir, "postmaster.pid");
}

export function readPostmasterFile(clusterDir: string): PostmasterFile | undefined {
  const lines = readIfPresent(postmasterFileIn(clusterDir))?.split("\n");
  if (lines === undefined) return undefined;
  return { pid: Number.parseInt(lines[0] ?? "", 10), status: (lines[7] ?? "").trim() };
}

/**
 * Returns the PostgreSQL processes that work inside the directory, the server itself first. A backend of a
 * killed server counts, because it still holds the shared memory. The number in `postmaster.pid` alone does
 * not count: it may belong to another program by now.
 */
export function findPostgresOn(clusterDir: string): number[] {
  const postmaster = readPostmasterFile(clusterDir)?.pid;
  const candidates = process.platform === "linux" ? allProcesses() : [];
  if (postmaster !== undefined && postmaster > 0) candidates.unshift(postmaster);
  const canonicalDir = unlessAbsent(() => realpathSync(clusterDir)) ?? clusterDir;
  return [...new Set(candidates.filter((pid) => worksIn(pid, canonicalDir)))];
}

function allProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function worksIn(pid: number, directory: string): boolean {
  if (process.platform !== "linux") return commandLine(pid).includes(directory);
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === directory;
  } catch (error) {
    // A process of another user hides its directory, but then it does not use ours either.
    if (hasCode(error, "ENOENT", "ESRCH", "EACCES")) return false;
    throw error;
  }
}
