import { existsSync, readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";

/** Resource usage of processes from `/proc`. All values are NaN on systems without it. */
const isAvailable = existsSync("/proc/self/stat");

/** The kernel reports CPU time in ticks of 10 ms. */
const tickMs = 10;

/** Returns the CPU time of a process: all threads, user and kernel mode. */
export function cpuMs(pid: number): number {
  if (!isAvailable) return Number.NaN;
  const { userTicks, systemTicks } = statOf(pid);
  return (userTicks + systemTicks) * tickMs;
}

/** Returns the CPU time of a process and its descendants, including exited ones. */
export function cpuMsOfTree(pid: number): number {
  if (!isAvailable) return Number.NaN;
  const { endedChildrenTicks } = statOf(pid);
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((other) => parentOf(other) === pid);
  return (
    cpuMs(pid) +
    endedChildrenTicks * tickMs +
    children.reduce((sum, child) => sum + (survivors(() => cpuMs(child)) ?? 0), 0)
  );
}

/** Returns the scheduling delay of the main thread of a process: it was ready to run, and no core was free. */
export function coreWaitMs(pid: number): number {
  if (!isAvailable) return Number.NaN;
  const [, waitedNanoseconds] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
  return Number(waitedNanoseconds) / 1e6;
}

/** Returns the CPU time of all processes of the machine. */
export function machineCpuMs(): number {
  return cpus().reduce(
    (sum, { times }) => sum + times.user + times.nice + times.sys + times.irq,
    0,
  );
}

/** Returns the resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, "VmRSS");
}

/** Returns the peak resident memory of a process in bytes. */
export function peakResidentBytes(pid: number): number {
  return statusBytes(pid, "VmHWM");
}

function statusBytes(pid: number, field: string): number {
  if (!isAvailable) return Number.NaN;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s*(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
}

function statOf(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The process name is in brackets and may contain spaces and brackets. The other fields follow it.
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  return {
    parent: fields[1] as number,
    userTicks: fields[11] as number,
    systemTicks: fields[12] as number,
    endedChildrenTicks: (fields[13] as number) + (fields[14] as number),
  };
}

function parentOf(pid: number): number | undefined {
  return survivors(() => statOf(pid).parent);
}

/** Returns undefined if the process has exited meanwhile. */
function survivors<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
