import { setTimeout as delay } from "node:timers/promises";
import type { Bench, Benchmark } from "../benchmark.ts";
import { startBareServer } from "../http/beside-bare.ts";
import { captureAnswer, headersWithout } from "../http/raw-connection.ts";
import { authorized } from "../http/requests.ts";
import { cpuMs, cpuMsOfTree, settledBytes } from "../processes/process-usage.ts";
import { count, number, ratioBelow } from "../reporting.ts";
import { median, quantile } from "../statistics.ts";
import { startEdge } from "../system/services.ts";
import { startChangingSystem } from "./measured-streams.ts";
import { openStreams, valuesStream as stream } from "./readers.ts";

export const twoEdgesBenchmark: Benchmark = {
  name: "two-edges",
  pinned: true,
  summary:
    "a change to the last of 20,000 open streams on two edges, beside a bare push to as many",
  method:
    "All streams are of one environment with 100 flags, half of them on each edge. Changes are made one at a time by `PATCH`. The baseline is two `node:http` servers with as many open responses: from the first write until the last stream has the same event. Both edges, and both servers, share one core; management, PostgreSQL, NATS and all clients share the other one. The times are of whole changes: a change ends when the last stream has it. A stage is measured by the CPU time of its processes. The figures for 100,000 streams are computed from those, not measured.",
  run,
};

const size = { streams: 20_000, changes: 60, pauseMs: 300 };
const quickSize = { streams: 40, changes: 3, pauseMs: 10 };
const warmUpChanges = 5;
const flags = 100;
const servers = 2;
const event = `event: flags\nid: "0000000000000000000000"\ndata: {"flags":{"checkout-flow-variant-0":true}}\n\n`;

/** Milliseconds of each change until its first and its last stream, and the CPU time of a change by process. */
type Sample = { firstMs: number[]; lastMs: number[]; cpu: Record<string, number> };
type Watched = Record<string, () => number>;

async function run(bench: Bench): Promise<void> {
  const system = await startChangingSystem(bench, bench.quick ? 5 : flags);
  const { tenant, toggle, management, postgres, nats } = system;
  const edges = await Promise.all(Array.from({ length: servers }, () => startEdge(bench, system)));
  const idleBytes = await bytesOf(bench, edges);
  const [edge] = edges;
  const headers = authorized(tenant.serverKey);
  const answer = { method: "GET", path: stream.path, headers } as const;
  const first = await captureAnswer(edge?.url ?? "", answer);
  const urls = edges.map(({ url }) => url);
  const ours = await measure(bench, {
    ...{ what: "edges", urls, key: tenant.clientKey },
    change: async () => (await toggle()).sentMs,
    watched: {
      management: () => cpuMs(management.pid),
      PostgreSQL: () => cpuMsOfTree(postgres.pid),
      NATS: () => cpuMs(nats.pid),
      edges: () => sum(edges.map(({ pid }) => cpuMs(pid))),
    },
    settled: () => bytesOf(bench, edges),
  });
  for (const { stop } of edges) await stop();
  const bare = await Promise.all(Array.from({ length: servers }, () => startBareServer(bench)));
  const greeting = { headers: headersWithout(first, ["date"]), firstEvents: first.body.toString() };
  for (const { call } of bare) await call.stream(greeting);
  const baseline = await measure(bench, {
    ...{ what: "bare servers", urls: bare.map((one) => one.greeting.url), key: "unused" },
    change: async () =>
      Math.min(...(await Promise.all(bare.map((one) => one.call.broadcast(event))))),
    watched: { servers: () => sum(bare.map(({ pid }) => cpuMs(pid))) },
    settled: () => bytesOf(bench, bare),
  });
  report(bench, { ours, baseline, idleBytes });
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

const bytesOf = async (bench: Bench, processes: readonly { pid: number }[]) =>
  sum(await Promise.all(processes.map(({ pid }) => settledBytes(bench, pid))));

async function measure(
  bench: Bench,
  options: {
    what: string;
    urls: readonly string[];
    key: string;
    /** Makes a change. Returns when it began. */
    change: () => Promise<number>;
    watched: Watched;
    settled: () => Promise<number>;
  },
): Promise<Sample & { openBytes: number }> {
  const { streams, changes, pauseMs } = bench.quick ? quickSize : size;
  const { what, urls, key, change, watched } = options;
  bench.say(`${count(streams)} streams on two ${what}`);
  const readers = await openStreams(bench, { urls, key, streams, stream });
  const openBytes = await options.settled();
  const sample: Sample = { firstMs: [], lastMs: [], cpu: {} };
  let before = readAll(watched);
  for (let made = -warmUpChanges; made < changes; made += 1) {
    if (made === 0) before = readAll(watched);
    await readers.arm();
    const beganMs = await change();
    const arrived = await readers.arrivals();
    if (made >= 0) {
      sample.firstMs.push(arrived.reduce((a, b) => Math.min(a, b)) - beganMs);
      sample.lastMs.push(arrived.reduce((a, b) => Math.max(a, b)) - beganMs);
    }
    await delay(pauseMs);
  }
  for (const [name, used] of Object.entries(readAll(watched)))
    sample.cpu[name] = (used - (before[name] ?? 0)) / changes;
  await readers.stop();
  return { ...sample, openBytes };
}

const readAll = (watched: Watched) =>
  Object.fromEntries(Object.entries(watched).map(([name, read]) => [name, read()]));

function report(
  bench: Bench,
  {
    ours,
    baseline,
    idleBytes,
  }: { ours: Sample & { openBytes: number }; baseline: Sample; idleBytes: number },
): void {
  const { streams } = bench.quick ? quickSize : size;
  bench.latencies("PATCH to the last stream: ", ours.lastMs, {
    ...{ of: ["median", "p99"], baselineMs: baseline.lastMs },
    goals: { p99: ratioBelow(1.5) },
  });
  bench.latencies("PATCH to the first stream: ", ours.firstMs, { of: ["median", "p99"] });
  const broadcast = (sample: Sample) =>
    sample.lastMs.map((last, at) => last - (sample.firstMs[at] ?? 0));
  bench.latencies("first to last stream: ", broadcast(ours), {
    ...{ of: ["median", "p99"], baselineMs: broadcast(baseline) },
  });
  const perStream = (cpu = Number.NaN) => (cpu * 1e3) / streams;
  const edgeUs = perStream(ours.cpu.edges);
  bench.figure("CPU of a change per stream: edges", "µs", edgeUs, {
    baseline: perStream(baseline.cpu.servers),
  });
  for (const name of ["management", "PostgreSQL", "NATS"])
    bench.figure(`CPU of a change: ${name}`, "ms", ours.cpu[name] ?? Number.NaN);
  const kB = (ours.openBytes - idleBytes) / streams / 1e3;
  bench.figure("memory of the edges per stream", "kB", kB);
  const edges = 10;
  const share = 100_000 / edges;
  bench.note`100,000 streams, computed: a change costs ${number((100_000 * edgeUs) / 1e6)} s of CPU in all edges. On ${edges} edges with a core each, the last of ${count(share)} streams has it after ${number((share * edgeUs) / 1e3 + median(ours.firstMs))} ms, and each edge needs ${number((share * kB) / 1e3)} MB beside its own. The slowest change of this run took ${number(quantile(ours.lastMs, 1))} ms.`;
}
