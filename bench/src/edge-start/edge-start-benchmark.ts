import { mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { peakResidentBytes, residentBytes } from "../processes/process-usage.ts";
import { alternate } from "../rounds.ts";
import { startNats } from "../system/backends.ts";
import { type Service, startEdge } from "../system/services.ts";
import { snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";

export const edgeStartBenchmark: Benchmark = {
  name: "edge-start",
  pinned: true,
  summary:
    "start of an edge with 100,000 flags in 500 environments, from NATS and from its cache file",
  method:
    "The time from the start of the process until `/readyz` returns 200. The snapshot has 100,000 flags and 500 API keys. " +
    "Without NATS, an edge waits 1.5 s for it before it reads its cache file. " +
    "The baseline is a process that watches the bucket with `@nats-io/kv` and keeps nothing.",
  run,
};

const size = { environments: 500, flagsPerEnvironment: 200 };
const quickSize = { environments: 4, flagsPerEnvironment: 10 };
const goalSeconds = 3;
const goalMegabytes = 500;
/** No server listens on this address. */
const nowhere = "nats://127.0.0.1:1";

async function run(bench: Bench): Promise<Outcome> {
  const content = snapshotContent(bench.quick ? quickSize : size);
  const nats = await startNats(bench);
  bench.say(`writing ${content.records.length} entries`);
  await writeSnapshot(nats.url, content);
  const directory = mkdtempSync(join(tmpdir(), "halyard-bench-cache-"));
  bench.afterwards(async () => rmSync(directory, { recursive: true, force: true }));
  const cacheFile = join(directory, "snapshot");

  bench.say("starting from NATS, and a bare watch, in turn");
  const samples = await alternate(bench.quick ? 1 : 3, {
    // The edge writes the cache file when it stops, after the measurement.
    nats: () => startOnce(bench, { natsUrl: nats.url, cacheFile }),
    watch: () => watchOnce(bench, nats.url, content.records.length),
  });
  bench.say("starting from the cache file");
  const { cache } = await alternate(bench.quick ? 1 : 3, {
    cache: () => startOnce(bench, { natsUrl: nowhere, cacheFile }),
  });
  return {
    figures: [
      {
        what: "start to ready, from NATS vs. a bare watch",
        unit: "s",
        measured: samples.nats.seconds,
        baseline: samples.watch.seconds,
        goal: { of: "measured", below: goalSeconds },
      },
      {
        what: "start to ready, from the cache file without NATS",
        unit: "s",
        measured: cache.seconds,
        goal: { of: "measured", below: goalSeconds },
      },
      {
        what: "memory after the start vs. a bare watch",
        unit: "MB",
        measured: samples.nats.megabytes,
        baseline: samples.watch.megabytes,
        goal: { of: "measured", below: goalMegabytes },
      },
      {
        what: "peak memory vs. a bare watch",
        unit: "MB",
        measured: samples.nats.peakMegabytes,
        baseline: samples.watch.peakMegabytes,
        goal: { of: "measured", below: goalMegabytes },
      },
      {
        what: "memory after a start from the cache file",
        unit: "MB",
        measured: cache.megabytes,
        goal: { of: "measured", below: goalMegabytes },
      },
    ],
    notes: [
      `${content.records.length} entries. The bare watch is a process with @nats-io/kv that counts ` +
        "them and stores none. Without NATS, an edge waits 1.5 s before it reads its cache file.",
    ],
    servers: { NATS: nats.version },
  };
}

async function startOnce(bench: Bench, options: { natsUrl: string; cacheFile: string }) {
  const beganMs = performance.now();
  const edge = await startEdge(bench, { ...options, core: bench.cores?.server });
  await ready(edge);
  const seconds = (performance.now() - beganMs) / 1e3;
  await delay(bench.quick ? 0 : settleMs);
  const sample = { seconds, ...memoryOf(edge.child.pid) };
  await edge.child.stop();
  return sample;
}

/**
 * Memory is read shortly after the start, as an operator would, because garbage collection has no fixed time.
 */
const settleMs = 2_000;

async function watchOnce(bench: Bench, natsUrl: string, entries: number) {
  const beganMs = performance.now();
  const watch = await startChild(bench, {
    program: join(import.meta.dirname, "bare-watch-process.ts"),
    core: bench.cores?.server,
    environment: { NATS_URL: natsUrl },
  });
  const seconds = (performance.now() - beganMs) / 1e3;
  const watched = (watch.greeting as { entries: number }).entries;
  if (watched !== entries) throw new Error(`the watch saw ${watched} of ${entries} entries`);
  const sample = { seconds, ...memoryOf(watch.pid) };
  await watch.stop();
  return sample;
}

function memoryOf(pid: number) {
  return { megabytes: residentBytes(pid) / 1e6, peakMegabytes: peakResidentBytes(pid) / 1e6 };
}

const pollIntervalMs = 5;

/** Polls at short intervals, because the interval is part of the measured time. */
async function ready(edge: Service): Promise<void> {
  while ((await statusOf(`${edge.metricsUrl}/readyz`)) !== 200) await delay(pollIntervalMs);
}

function statusOf(url: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
    })
      .on("error", reject)
      .end();
  });
}
