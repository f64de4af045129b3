import type { Bench } from "./benchmark.ts";
import { keepToCore } from "./processes/cores.ts";

/**
 * Runs a benchmark and stops everything that it started, even after an error. If this process is killed, its
 * children exit because their channels close, and the reaper stops the servers.
 */
export async function withBench<T>(
  settings: Pick<Bench, "quick" | "cores">,
  work: (bench: Bench) => Promise<T>,
): Promise<T> {
  keepToCore(settings.cores?.load);
  const releases: (() => Promise<unknown>)[] = [];
  try {
    return await work({
      ...settings,
      afterwards: (release) => void releases.push(release),
      say: (text) => console.error(`… ${text}`),
    });
  } finally {
    for (const release of releases.reverse()) await release();
  }
}
