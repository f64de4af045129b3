import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hasCode } from "./files.ts";

/**
 * A process id alone names a process only while that process lives: afterwards the system gives the
 * number to another one. Together with the time at which the process started it is unique, so this
 * pair is what gets written down and compared before anything is stopped.
 */
export type ProcessIdentity = { pid: number; startedAt: string };

/** Undefined when no such process runs; one that has ended and waits to be collected does not count. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const startedAt = process.platform === "linux" ? startTimeOnLinux(pid) : startTimeFromPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

export function isSameProcessRunning(identity: ProcessIdentity): boolean {
  return identifyProcess(identity.pid)?.startedAt === identity.startedAt;
}

/** Field 22 of /proc/<pid>/stat, in clock ticks since the machine started; field 3 is the state. */
function startTimeOnLinux(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in parentheses, which may hold spaces of its own.
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
    // This is how ps answers that there is no such process.
    return "";
  }
}
