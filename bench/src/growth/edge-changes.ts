import type { Bench } from "../benchmark.ts";
import { median } from "../statistics.ts";
import { openStreams, valuesStream as stream } from "../streams/readers.ts";
import { serviceCpuMs } from "../system/services.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { nowMs } from "../time.ts";
import { growthBenchmark } from "./curve.ts";
import { openFlagChanges } from "./flag-changes.ts";

export const edgeFlagsCurve = growthBenchmark({
  name: "edge-flags",
  summary: "cost of a change on an edge, by flags in the environment",
  method:
    "Entries of one environment are published one at a time, each after the previous event has arrived on the streams.",
  sizes: { of: "flags", full: [1_000, 20_000, 100_000], quick: [10, 50], rounds: 3 },
  costs: {
    cpuMs: ["CPU of the edge per change", "ms", 5],
    latencyMs: ["entry published to event on every stream, median", "ms"],
  },
  // One stream for each reader process.
  prepare: (bench, flags) => startChangingEdge(bench, { flags, streams: 2 }),
});

export const streamsCurve = growthBenchmark({
  name: "streams",
  summary: "cost of a change per open stream on an edge, by open streams",
  method:
    "Entries of an environment with 100 flags are published one at a time, each after the previous event has arrived on all streams.",
  sizes: { of: "streams", full: [100, 10_000], quick: [4, 20], rounds: 3 },
  costs: { perStream: ["CPU of the edge per change and stream", "µs"] },
  async prepare(bench, streams) {
    const measure = await startChangingEdge(bench, { flags: 100, streams });
    return async () => ({ perStream: ((await measure()).cpuMs * 1e3) / streams });
  },
});

const warmUpChanges = 5;
const changes = 200;
const quickChanges = 3;
/** Limits the time of a measurement with slow changes. */
const measureMs = 4_000;

/**
 * Returns a function that measures the CPU time of the edge per change, and the median time from the entry's
 * publication to the event on the last stream.
 */
async function startChangingEdge(
  bench: Bench,
  { flags, streams }: { flags: number; streams: number },
) {
  const { nats, content, edge, key } = await startSnapshotEdge(bench, {
    flagsPerEnvironment: flags,
  });
  const readers = await openStreams(bench, { urls: [edge.url], key, streams, stream });
  const publishNext = await openFlagChanges(bench, nats, content);

  async function change(): Promise<number> {
    await readers.arm();
    const publishedMs = nowMs();
    await publishNext();
    const arrivedMs = await readers.arrivals();
    return arrivedMs.reduce((latest, next) => Math.max(latest, next), 0) - publishedMs;
  }

  return async () => {
    for (let count = 0; count < warmUpChanges; count += 1) await change();
    const latenciesMs: number[] = [];
    const beforeMs = await serviceCpuMs(edge);
    const deadlineMs = nowMs() + measureMs;
    while (latenciesMs.length < (bench.quick ? quickChanges : changes) && nowMs() < deadlineMs)
      latenciesMs.push(await change());
    const usedMs = (await serviceCpuMs(edge)) - beforeMs;
    return { cpuMs: usedMs / latenciesMs.length, latencyMs: median(latenciesMs) };
  };
}
