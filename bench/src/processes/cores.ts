import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

const allAtStart = allowedCores();
/** A core for the measured process and a core for the load. */
export type Cores = { server: string; load: string };

/** Returns two cores that this process may use; undefined without `taskset` (Linux) or a second core. */
export function findCores(): Cores | undefined {
  if (spawnSync("taskset", ["--version"]).status !== 0) return undefined;
  const [server] = allAtStart;
  const load = allAtStart.at(-1);
  if (server === undefined || load === undefined || server === load) return undefined;
  return { server, load };
}

/** Pins this process and its future children to one core, or removes the pinning. */
export function keepToCore(core: string | undefined): void {
  const list = core ?? allAtStart.join(",");
  spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", list, String(process.pid)]);
}

/** Parses a list of cores such as `0-3,8`. */
function allowedCores(): string[] {
  if (!existsSync("/proc/self/status")) return [];
  const status = readFileSync("/proc/self/status", "utf8");
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(status)?.[1] ?? "";
  return list.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number);
    if (first === undefined || last === undefined) return [];
    return Array.from({ length: last - first + 1 }, (_, offset) => String(first + offset));
  });
}
