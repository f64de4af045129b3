import { execFileSync } from "node:child_process";
import { readdirSync, readlinkSync, realpathSync } from "node:fs";
import { hasCode, readIfPresent, unlessAbsent } from "./files.ts";

/** Returns whether a process runs. A zombie process does not count. */
export function isRunning(pid: number): boolean {
  const state =
    process.platform === "linux"
      ? // The name of the program, in parentheses, precedes the state and may contain spaces.
        readStat(pid)?.replace(/^.*\) /s, "")
      : ps(["-p", String(pid), "-o", "stat="]);
  return state !== undefined && /^[^ZX]/.test(state);
}

/**
 * Returns the ids of the processes that work on a directory of data, in ascending order. Id files do not suffice,
 * because the system reuses ids. The processes include backends of a killed PostgreSQL, which still use its shared memory.
 */
export function processesOn(directory: string): number[] {
  const pids =
    process.platform === "linux"
      ? linuxProcessesIn(unlessAbsent(() => realpathSync(directory)) ?? directory)
      : ps(["-A", "-o", "pid=,command="])
          .split("\n")
          .filter((line) => line.includes(directory))
          .map((line) => Number.parseInt(line, 10));
  return pids.toSorted((one, other) => one - other);
}

function linuxProcessesIn(directory: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === directory;
    } catch (error) {
      // The directory of another user's process is not readable. Such a process does not use the data.
      if (hasCode(error, "ENOENT", "ESRCH", "EACCES")) return false;
      throw error;
    }
  });
}

function readStat(pid: number): string | undefined {
  try {
    return readIfPresent(`/proc/${pid}/stat`);
  } catch (error) {
    if (hasCode(error, "ESRCH")) return undefined;
    throw error;
  }
}

function ps(args: string[]): string {
  try {
    return execFileSync("ps", args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    // `ps` fails if it finds no process.
    return "";
  }
}
