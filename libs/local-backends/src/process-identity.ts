import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";

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

/** Tells whether the process is a PostgreSQL server on this data directory: it works inside it. */
export function isPostgresOn(pid: number, clusterDir: string): boolean {
  if (process.platform !== "linux") return commandLine(pid).includes(clusterDir);
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === clusterDir;
  } catch (error) {
    if (!hasCode(error, "ENOENT", "ESRCH", "EACCES")) throw error;
    // Another user's process hides its directory, but it cannot be the owner of ours either.
    return false;
  }
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

function commandLine(pid: number): string {
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

/** Looks at the code alone, since an error may come from another realm, as Node's do under jest. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  if (typeof error !== "object" || error === null || !("code" in error)) return false;
  return codes.includes(String(error.code));
}
