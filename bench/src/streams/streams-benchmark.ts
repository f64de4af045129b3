import type { Bench, Benchmark } from "../benchmark.ts";
import { below, count, type Goal, ratioBelow } from "../reporting.ts";
import {
  type Case,
  type Latencies,
  type Memory,
  measureBare,
  measureEdge,
  startChangingSystem,
} from "./measured-streams.ts";
import { openStreams, valuesStream } from "./readers.ts";

export const streamsBenchmark: Benchmark = {
  name: "streams",
  pinned: true,
  summary:
    "delivery of a change to 1,000 and 10,000 open streams on one edge, and memory per stream",
  method:
    "All streams are of one environment, so that each receives every change. Changes are made one at a time by `PATCH`. `PATCH to client` is the time from sending the request to the event's arrival; `2xx to client` begins with the response. The quantiles include all streams and all changes. The edge has a core to itself; management, PostgreSQL, NATS and all clients share the other one. Memory is the growth of resident memory from an idle edge, compared with a `node:http` server with as many open responses.",
  run,
};

const flags = 100;

type StreamsCase = Case & {
  goals: { median?: Goal; p99: Goal };
  /** Measures memory. With few streams, other memory dominates. */
  memory: boolean;
};

const fewGoals = { median: below(10), p99: below(50) };
const cases: readonly StreamsCase[] = [
  { streams: 1_000, changes: 100, pauseMs: 50, goals: fewGoals, memory: false },
  { streams: 10_000, changes: 40, pauseMs: 200, goals: { p99: below(500) }, memory: true },
];
const quickCases: readonly StreamsCase[] = [
  { streams: 50, changes: 3, pauseMs: 10, goals: fewGoals, memory: true },
];

const event = `event: flags\nid: "0000000000000000000000"\ndata: {"flags":{"checkout-flow-variant-0":true}}\n\n`;

async function run(bench: Bench): Promise<void> {
  const system = await startChangingSystem(bench, bench.quick ? 5 : flags);
  const { clientKey: key } = system.tenant;
  const stream = valuesStream;
  for (const each of bench.quick ? quickCases : cases) {
    const { streams, goals } = each;
    const name = `${count(streams)} streams`;
    const edge = await measureEdge(bench, each, {
      ...{ system, stream },
      open: async (url) => [await openStreams(bench, { urls: [url], key, streams, stream })],
    });
    const note = `${name}: the bare server takes from its first write to the client`;
    const bare = await measureBare(bench, each, { first: edge.first, event, stream, note });
    const [latencies] = edge.latencies as [Latencies];
    bench.latencies(`${name}: 2xx to client, `, latencies.sinceAnswerMs, { goals });
    bench.latencies(`${name}: PATCH to client, `, latencies.sinceSendingMs, {
      of: ["median", "p99", "maximum"],
    });
    if (each.memory) memoryFigures(bench, each, { edge: edge.memory, bare });
  }
}

function memoryFigures(
  bench: Bench,
  { streams }: Case,
  { edge, bare }: { edge: Memory; bare: Memory },
): void {
  const perStream = (memory: Memory) => (memory.openBytes - memory.idleBytes) / streams / 1e3;
  const what = `${count(streams)} streams: memory per stream`;
  bench.figure(what, "kB", perStream(edge), { goal: below(30) });
  bench.figure(`${what} vs. node:http`, "kB", perStream(edge), {
    baseline: perStream(bare),
    goal: ratioBelow(1.5),
  });
  bench.figure("memory of an idle edge", "MB", edge.idleBytes / 1e6);
}
