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
    "start of an edge with 100,000 flags in 500 environments, from NATS and from its disk cache",
  run,
};

const size = { environments: 500, flagsPerEnvironment: 200 };
const quickSize = { environments: 4, flagsPerEnvironment: 10 };
const goalSeconds = 3;
const goalMegabytes = 500;
/** Nobody listens here, so NATS is away. */
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
    // Written when the edge stops, after what is measured.
    nats: () => startOnce(bench, { natsUrl: nats.url, cacheFile }),
    watch: () => watchOnce(bench, nats.url, content.records.length),
  });
  bench.say("starting from the disk cache");
  const { cache } = await alternate(bench.quick ? 1 : 3, {
    cache: () => startOnce(bench, { natsUrl: nowhere, cacheFile }),
  });
  return {
    figures: [
      {
        what: "process start to ready, from NATS, beside a bare watch",
        unit: "s",
        measured: samples.nats.seconds,
        baseline: samples.watch.seconds,
        goal: { of: "measured", below: goalSeconds },
      },
      {
        what: "process start to ready, from the disk cache, NATS away",
        unit: "s",
        measured: cache.seconds,
        goal: { of: "measured", below: goalSeconds },
      },
      {
        what: "resident memory after the start, beside a bare watch",
        unit: "MB",
        measured: samples.nats.megabytes,
        baseline: samples.watch.megabytes,
        goal: { of: "measured", below: goalMegabytes },
      },
      {
        what: "resident memory, the most until then",
        unit: "MB",
        measured: samples.nats.peakMegabytes,
        baseline: samples.watch.peakMegabytes,
        goal: { of: "measured", below: goalMegabytes },
      },
      {
        what: "resident memory after a start from the disk cache",
        unit: "MB",
        measured: cache.megabytes,
        goal: { of: "measured", below: goalMegabytes },
      },
    ],
    notes: [
      `${content.records.length} entries. The bare watch is a process with @nats-io/kv that counts ` +
        "them and keeps none. Without NATS an edge waits 1.5 s for it before it takes the cache.",
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

/** The collector runs when it likes; shortly after the start is when an operator would look. */
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

const lookEveryMs = 5;

/** Asks closely: the answers of a moment ago are part of what is measured. */
async function ready(edge: Service): Promise<void> {
  while ((await statusOf(`${edge.metricsUrl}/readyz`)) !== 200) await delay(lookEveryMs);
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
