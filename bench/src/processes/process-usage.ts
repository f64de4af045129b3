import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";

/** Resource usage of processes from `/proc`. All values are NaN on systems without it. */
const isAvailable = existsSync("/proc/self/stat");
/** The kernel reports CPU time in ticks of 10 ms. */
const tickMs = 10;
/** Returns the CPU time of a process: all threads, user and kernel mode. */
export const cpuMs = (pid: number) => (isAvailable ? statOf(pid).ownMs : Number.NaN);

/** Returns the CPU time of a process and its descendants, including exited ones. */
export function cpuMsOfTree(pid: number): number {
  if (!isAvailable) return Number.NaN;
  const { ownMs, endedChildrenMs } = statOf(pid);
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statOfRunning(Number(name)))
    .filter((stat) => stat?.parent === pid);
  return children.reduce((sum, child) => sum + (child?.ownMs ?? 0), ownMs + endedChildrenMs);
}

/** Returns the resident memory of a process in bytes. */
export const residentBytes = (pid: number) => statusBytes(pid, "VmRSS");
/** Returns the peak resident memory of a process in bytes. */
export const peakResidentBytes = (pid: number) => statusBytes(pid, "VmHWM");

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
  const ticks = (first: number) => (fields[first] as number) + (fields[first + 1] as number);
  return {
    parent: fields[1] as number,
    ownMs: ticks(11) * tickMs,
    endedChildrenMs: ticks(13) * tickMs,
  };
}

/** Returns undefined if the process has exited meanwhile. */
function statOfRunning(pid: number) {
  try {
    return statOf(pid);
  } catch {
    return undefined;
  }
}

const pollIntervalMs = 1_000;
const quickPollIntervalMs = 50;
/** Maximum time to wait for stable memory. */
const maxPolls = 10;
const settledShare = 0.005;

/** Returns the resident memory after it was stable for a second. */
export async function settledBytes({ quick }: Bench, pid: number): Promise<number> {
  let before = residentBytes(pid);
  for (let look = 0; look < maxPolls; look += 1) {
    await delay(quick ? quickPollIntervalMs : pollIntervalMs);
    const now = residentBytes(pid);
    if (Number.isNaN(now) || Math.abs(now - before) < settledShare * before) return now;
    before = now;
  }
  return before;
}
