import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Bench, Benchmark } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { peakResidentBytes, residentBytes } from "../processes/process-usage.ts";
import { below } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import { throwawayDirectory } from "../system/backends.ts";
import { awaitReady, launchEdge } from "../system/services.ts";
import { snapshotContent } from "../system/snapshot-content.ts";
import { startSnapshot } from "../system/snapshot-edge.ts";

export const edgeStartBenchmark: Benchmark = {
  name: "edge-start",
  pinned: true,
  summary:
    "start of an edge with 100,000 flags in 500 environments, from NATS and from its cache file",
  method:
    "The time from the start of the process until `/readyz` returns 200. The snapshot has 100,000 flags and 500 API keys. Without NATS, an edge waits 1.5 s for it before it reads its cache file. The baseline is a process that watches the bucket with `@nats-io/kv` and keeps nothing.",
  run,
};

const size = { environments: 500, flagsPerEnvironment: 200 };
const quickSize = { environments: 4, flagsPerEnvironment: 10 };
/** No server listens on this address. */
const nowhere = { url: "nats://127.0.0.1:1" };

async function run(bench: Bench): Promise<void> {
  const content = snapshotContent(bench.quick ? quickSize : size);
  const { length: entries } = content.records;
  bench.say(`writing ${entries} entries`);
  const nats = await startSnapshot(bench, content);
  const cacheFile = join(throwawayDirectory(bench, "cache"), "snapshot");

  const { edge, watch } = await alternate(bench, 3, {
    // The edge writes the cache file when it stops, after the measurement.
    edge: () => startOnce(bench, { nats, cacheFile }),
    watch: () => watchOnce(bench, nats.url, entries),
  });
  const { cache } = await alternate(bench, 3, {
    cache: () => startOnce(bench, { nats: nowhere, cacheFile }),
  });
  const [inTime, goal] = [below(3), below(500)];
  const both = [edge, watch] as const;
  const fromCache = "start to ready, from the cache file without NATS";
  bench.compare("start to ready, from NATS vs. a bare watch", "s", both, "seconds", inTime);
  bench.figure(fromCache, "s", cache.seconds, { goal: inTime });
  bench.compare("memory after the start vs. a bare watch", "MB", both, "megabytes", goal);
  bench.compare("peak memory vs. a bare watch", "MB", both, "peakMegabytes", goal);
  bench.figure("memory after a start from the cache file", "MB", cache.megabytes, { goal });
  bench.note`${entries} entries. The bare watch is a process with @nats-io/kv that counts them and stores none. Without NATS, an edge waits 1.5 s before it reads its cache file.`;
}

/** Memory is read shortly after the start, as an operator would, because garbage collection has no fixed time. */
const settleMs = 2_000;

async function startOnce(bench: Bench, options: { nats: { url: string }; cacheFile: string }) {
  const beganMs = performance.now();
  const edge = await launchEdge(bench, options);
  // The interval is part of the measured time.
  await awaitReady(edge, 5);
  const seconds = (performance.now() - beganMs) / 1e3;
  await delay(bench.quick ? 0 : settleMs);
  const sample = { seconds, ...memoryOf(edge.pid) };
  await edge.stop();
  return sample;
}

async function watchOnce(bench: Bench, natsUrl: string, entries: number) {
  const beganMs = performance.now();
  const watch = await startChild<unknown, { entries: number }>(bench, {
    program: "edge-start/bare-watch-process.ts",
    core: "server",
    environment: { NATS_URL: natsUrl },
  });
  const seconds = (performance.now() - beganMs) / 1e3;
  const { entries: watched } = watch.greeting;
  if (watched !== entries) throw new Error(`the watch saw ${watched} of ${entries} entries`);
  const sample = { seconds, ...memoryOf(watch.pid) };
  await watch.stop();
  return sample;
}

function memoryOf(pid: number) {
  return { megabytes: residentBytes(pid) / 1e6, peakMegabytes: peakResidentBytes(pid) / 1e6 };
}
