import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { quantile } from "../statistics.ts";
import {
  type Case,
  type Latencies,
  type Memory,
  measureBare,
  measureEdge,
  startChangingSystem,
} from "./measured-streams.ts";
import { startReaders, valuesStream } from "./readers.ts";

export const streamsBenchmark: Benchmark = {
  name: "streams",
  pinned: true,
  summary:
    "delivery of a change to 1,000 and 10,000 open streams on one edge, and memory per stream",
  method:
    "All streams are of one environment, so that each receives every change. Changes are made one at a time by `PATCH`. " +
    "`PATCH to client` is the time from sending the request to the event's arrival; `2xx to client` begins with the response. " +
    "The quantiles include all streams and all changes. The edge has a core to itself; management, PostgreSQL, NATS and all clients share the other one. " +
    "Memory is the growth of resident memory from an idle edge, compared with a `node:http` server with as many open responses.",
  run,
};

const flags = 100;
const kilobyte = 1_000;

type StreamsCase = Case & {
  goalMs: { median?: number; p99: number };
  /** Measures memory. With few streams, other memory dominates. */
  memory: boolean;
};

const cases: readonly StreamsCase[] = [
  { streams: 1_000, changes: 100, pauseMs: 50, goalMs: { median: 10, p99: 50 }, memory: false },
  { streams: 10_000, changes: 40, pauseMs: 200, goalMs: { p99: 500 }, memory: true },
];

const quickCases: readonly StreamsCase[] = [
  { streams: 50, changes: 3, pauseMs: 10, goalMs: { median: 10, p99: 50 }, memory: true },
];

const event = `event: flags\nid: "0000000000000000000000"\ndata: {"flags":{"checkout-flow-variant-0":true}}\n\n`;

async function run(bench: Bench): Promise<Outcome> {
  const system = await startChangingSystem(bench, bench.quick ? 5 : flags);
  const figures: Figure[] = [];
  const notes: string[] = [];
  for (const each of bench.quick ? quickCases : cases) {
    bench.say(`${each.streams} streams: the edge`);
    const edge = await measureEdge(bench, each, {
      ...{ system, stream: valuesStream },
      async open(edgeUrl) {
        const readers = await startReaders(bench);
        await readers.open(edgeUrl, system.tenant.clientKey, each.streams);
        return { readers };
      },
    });
    bench.say(`${each.streams} streams: the bare server`);
    const { first } = edge;
    const bare = await measureBare(bench, each, { first, event, stream: valuesStream });
    figures.push(...latencyFigures(each, edge.latencies.readers));
    if (each.memory) figures.push(...memoryFigures(each, edge.memory, bare.memory));
    notes.push(
      `${each.streams.toLocaleString("en-US")} streams: the bare server takes from its first write to the ` +
        `client: median ${number(quantile(bare.latenciesMs, 0.5))} ms, ` +
        `p99 ${number(quantile(bare.latenciesMs, 0.99))} ms.`,
    );
  }
  return {
    figures,
    notes,
    servers: { PostgreSQL: system.postgres.version, NATS: system.nats.version },
  };
}

function latencyFigures(
  { streams, goalMs }: StreamsCase,
  { sinceAnswerMs, sinceSendingMs }: Latencies,
): Figure[] {
  const named = (what: string) => `${streams.toLocaleString("en-US")} streams: ${what}`;
  const figure = (what: string, measured: number, below?: number): Figure => ({
    what: named(what),
    unit: "ms",
    measured,
    ...(below === undefined ? {} : { goal: { of: "measured", below } }),
  });
  return [
    figure("2xx to client, median", quantile(sinceAnswerMs, 0.5), goalMs.median),
    figure("2xx to client, p99", quantile(sinceAnswerMs, 0.99), goalMs.p99),
    figure("PATCH to client, median", quantile(sinceSendingMs, 0.5)),
    figure("PATCH to client, p99", quantile(sinceSendingMs, 0.99)),
    figure("PATCH to client, maximum", quantile(sinceSendingMs, 1)),
  ];
}

/** Goals for kB per stream, and for the ratio to the bare server. */
const goalKilobytes = 30;
const goalRatio = 1.5;

function memoryFigures({ streams }: Case, edge: Memory, bare: Memory): Figure[] {
  const perStream = ({ idleBytes, openBytes }: Memory) =>
    (openBytes - idleBytes) / streams / kilobyte;
  const what = `${streams.toLocaleString("en-US")} streams: memory per stream`;
  const measured = perStream(edge);
  return [
    { what, unit: "kB", measured, goal: { of: "measured", below: goalKilobytes } },
    {
      what: `${what} vs. node:http`,
      unit: "kB",
      measured,
      baseline: perStream(bare),
      goal: { of: "ratio", below: goalRatio },
    },
    { what: "memory of an idle edge", unit: "MB", measured: edge.idleBytes / 1e6 },
  ];
}
