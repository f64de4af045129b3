import { existsSync, readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";

/** What a process uses, as the Linux kernel tells it. Elsewhere nobody does, and all of it is NaN. */
const told = existsSync("/proc/self/stat");

/** The kernel counts in hundredths of a second, whatever its own clock is. */
const tickMs = 10;

/** CPU time that a process has used so far, of all its threads, in user and kernel mode. */
export function cpuMs(pid: number): number {
  if (!told) return Number.NaN;
  const { userTicks, systemTicks } = statOf(pid);
  return (userTicks + systemTicks) * tickMs;
}

/** The same of a process and the processes below it, also of those that have ended meanwhile. */
export function cpuMsOfTree(pid: number): number {
  if (!told) return Number.NaN;
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

/** Scheduling delay of the main thread of a process so far: it was ready to run, and no core was free. */
export function coreWaitMs(pid: number): number {
  if (!told) return Number.NaN;
  const [, waitedNanoseconds] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ");
  return Number(waitedNanoseconds) / 1e6;
}

/** CPU time that all processes of the machine have used so far, on all cores. */
export function machineCpuMs(): number {
  return cpus().reduce(
    (sum, { times }) => sum + times.user + times.nice + times.sys + times.irq,
    0,
  );
}

/** Memory of a process that is in RAM now, in bytes. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, "VmRSS");
}

/** The most that it ever was. */
export function peakResidentBytes(pid: number): number {
  return statusBytes(pid, "VmHWM");
}

function statusBytes(pid: number, field: string): number {
  if (!told) return Number.NaN;
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s*(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
}

function statOf(pid: number) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name, in brackets, may itself hold blanks and brackets; the fields behind it do not.
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

/** Processes end while one looks at them. */
function survivors<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
