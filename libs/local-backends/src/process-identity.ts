import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hasCode } from "./files.ts";

/**
 * Identifies a process. The system reuses process ids, so an id is unique only together with the start time of the
 * process. Both are recorded, and compared before a process is stopped.
 */
export type ProcessIdentity = { pid: number; startedAt: string };

/** Returns the identity of a process; undefined if it does not run. A zombie process does not count. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const startedAt = process.platform === "linux" ? startTimeOnLinux(pid) : startTimeFromPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

export function isSameProcessRunning(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startedAt === identity.startedAt;
}

/** Reads field 22 of /proc/<pid>/stat: the start time in clock ticks since boot. Field 3 is the state. */
function startTimeOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in parentheses, which may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, startTicks] = [fields[0], fields[19]];
    return state === "Z" || state === "X" ? undefined : startTicks;
  } catch (error) {
    if (hasCode(error, "ENOENT", "ESRCH")) return undefined;
    throw error;
  }
}

function startTimeFromPs(pid: number): string | undefined {
  const line = processField(pid, "stat=,lstart=");
  return line === "" || line.startsWith("Z") ? undefined : line.split(/\s+/).slice(1).join(" ");
}

export function commandLine(pid: number): string {
  return processField(pid, "command=");
}

function processField(pid: number, format: string): string {
  try {
    return execFileSync("ps", ["-p", String(pid), "-o", format], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    // `ps` fails if there is no such process.
    return "";
  }
}
