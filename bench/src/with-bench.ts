import type { Bench } from "./benchmark.ts";
import { keepToCore } from "./processes/cores.ts";

/**
 * Gives a benchmark what it needs and ends all that it has started, however it goes. When this very
 * process is killed, the channels to its children close and the reaper ends the servers.
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
