import { readdirSync, readlinkSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { hasCode, readIfPresent, unlessAbsent } from "./files.ts";
import { commandLine } from "./process-identity.ts";

/** The used part of `postmaster.pid`. */
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
 * Returns the PostgreSQL processes whose working directory this is, the server itself first. It includes backends of a
 * killed server, because they still hold the shared memory. The id in `postmaster.pid` alone does not suffice, because
 * it may belong to another program now.
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
    // The directory of another user's process is not readable. Such a process does not use this cluster.
    if (hasCode(error, "ENOENT", "ESRCH", "EACCES")) return false;
    throw error;
  }
}
