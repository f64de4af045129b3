import { readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PostgresDataInUseError } from "./errors.ts";
import { hasCode, isPostgresOn } from "./process-identity.ts";

/** How long an earlier server may take to end, for instance after its launcher was killed. */
const PATIENCE_MS = 15_000;
const LOOK_EVERY_MS = 50;

/** What PostgreSQL writes into `postmaster.pid`, as far as it matters here. */
export type PostmasterFile = { pid: number; status: string };

export function readPostmasterFile(clusterDir: string): PostmasterFile | undefined {
  try {
    const lines = readFileSync(join(clusterDir, "postmaster.pid"), "utf8").split("\n");
    return { pid: Number.parseInt(lines[0] ?? "", 10), status: (lines[7] ?? "").trim() };
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

/**
 * PostgreSQL does not start while `postmaster.pid` names a living process, even when that number has
 * meanwhile gone to another program, nor while a backend of a killed server still holds the shared
 * memory. So it waits for real PostgreSQL processes to end, and then takes a stale file away.
 */
export async function awaitDataDirectoryFree(
  clusterDir: string,
  options: { onStep: (text: string) => void; patienceMs?: number },
): Promise<void> {
  const deadline = Date.now() + (options.patienceMs ?? PATIENCE_MS);
  let pids = findProcessesIn(clusterDir);
  if (pids.length > 0) {
    options.onStep(`waiting for an earlier PostgreSQL to end (process ${pids.join(", ")})`);
  }
  while (pids.length > 0) {
    if (Date.now() > deadline) {
      throw new PostgresDataInUseError(
        `Another PostgreSQL (process ${pids[0]}) works on ${clusterDir}. ` +
          `Stop it with \`kill -INT ${pids[0]}\`, or choose another directory in HALYARD_HOME.`,
      );
    }
    await delay(LOOK_EVERY_MS);
    pids = findProcessesIn(clusterDir);
  }
  rmSync(join(clusterDir, "postmaster.pid"), { force: true });
}

/** PostgreSQL processes that work inside the directory, the server itself first. */
export function findProcessesIn(clusterDir: string): number[] {
  const postmaster = readPostmasterFile(clusterDir)?.pid;
  const candidates = process.platform === "linux" ? allProcesses() : [];
  if (postmaster !== undefined && postmaster > 0) candidates.unshift(postmaster);
  const canonicalDir = realpathOrSame(clusterDir);
  const found = candidates.filter((pid) => isPostgresOn(pid, canonicalDir));
  return [...new Set(found)];
}

function allProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function realpathOrSame(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (hasCode(error, "ENOENT", "ENOTDIR")) return path;
    throw error;
  }
}
