import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { quantile } from "../statistics.ts";
import {
  type Case,
  type Latencies,
  measureBare,
  measureEdge,
  startChangingSystem,
} from "../streams/measured-streams.ts";
import { rulesStream, startReaders } from "../streams/readers.ts";
import { installServerSdk } from "./installed-sdk.ts";
import { startClients } from "./started-clients.ts";

export const sdkStreamsBenchmark: Benchmark = {
  name: "sdk-streams",
  group: "sdk",
  pinned: true,
  summary: "delivery of a change to 1,000 rule-set streams of server SDKs on one edge",
  method:
    "All streams are of one environment with 100 flags, so that each receives every change. Changes are made one at a time by `PATCH`. " +
    "995 streams belong to minimal readers, which search the received bytes for the event, because 1,000 clients in processes on one core would measure themselves. " +
    "Five streams belong to clients of the packed `@halyard/server-sdk`: their time ends with the event `change`, when the new rules are in memory. " +
    "`PATCH to stream` is the time from sending the request; `2xx to stream` begins with the response. The response waits until the edge has the change, so an event can arrive before it. " +
    "The quantiles include all streams and all changes. The edge has a core to itself; management, PostgreSQL, NATS and all readers share the other one. " +
    "The notes compare with a `node:http` server that writes the same event to as many open responses.",
  run,
};

const flags = 100;
const clients = 5;
const each: Case = { streams: 1_000, changes: 100, pauseMs: 50 };
const quickCase: Case = { streams: 30, changes: 3, pauseMs: 10 };
const goalP99Ms = 100;

async function run(bench: Bench): Promise<Outcome> {
  const measured = bench.quick ? quickCase : each;
  const sdk = installServerSdk(bench);
  const system = await startChangingSystem(bench, bench.quick ? 5 : flags);
  const { serverKey: key, environmentId } = system.tenant;
  bench.say(`${measured.streams} streams: the edge`);
  const edge = await measureEdge(bench, measured, {
    ...{ system, stream: rulesStream },
    async open(url) {
      const readers = await startReaders(bench, rulesStream);
      await readers.open(url, key, measured.streams - clients);
      // The edge writes to streams in the order of their opening, so the clients are the last ones.
      return { readers, clients: await startClients(bench, { sdk, url, key, count: clients }) };
    },
  });
  bench.say(`${measured.streams} streams: the bare server`);
  const event = changeEvent(environmentId);
  const first = { ...edge.first, body: Buffer.from(event) };
  const bare = await measureBare(bench, measured, { first, event, stream: rulesStream });
  const { readers, clients: applying } = edge.latencies;
  return {
    figures: [
      ...latencyFigures("all streams", joined(readers, applying)),
      ...latencyFigures("server SDK clients", applying),
    ],
    notes: [
      `The bare server takes from its first write to the stream: median ${number(quantile(bare.latenciesMs, 0.5))} ms, p99 ${number(quantile(bare.latenciesMs, 0.99))} ms.`,
      `${measured.streams - clients} minimal readers and ${clients} clients of the server SDK. The longest time from PATCH to a stream: ${number(quantile([...readers.sinceSendingMs, ...applying.sinceSendingMs], 1))} ms.`,
    ],
    servers: { PostgreSQL: system.postgres.version, NATS: system.nats.version },
  };
}

/** An event like those of the edge. */
function changeEvent(environmentId: string): string {
  const state = { enabled: true, rollout_percentage: 100, targeting_rules: [], version: 2 };
  const data = { environment_id: environmentId, flags: { "checkout-flow-variant-0": state } };
  return `event: ruleset\nid: "0000000000000000000000"\ndata: ${JSON.stringify(data)}\n\n`;
}

function joined(one: Latencies, other: Latencies): Latencies {
  return {
    sinceSendingMs: [...one.sinceSendingMs, ...other.sinceSendingMs],
    sinceAnswerMs: [...one.sinceAnswerMs, ...other.sinceAnswerMs],
  };
}

function latencyFigures(of: string, { sinceSendingMs, sinceAnswerMs }: Latencies): Figure[] {
  const figure = (what: string, timesMs: readonly number[], share: number): Figure => ({
    ...{ what: `${of}: ${what}`, unit: "ms", measured: quantile(timesMs, share) },
    ...(share === 0.99 ? { goal: { of: "measured", below: goalP99Ms } } : {}),
  });
  return [
    figure("PATCH to stream, median", sinceSendingMs, 0.5),
    figure("PATCH to stream, p99", sinceSendingMs, 0.99),
    figure("2xx to stream, median", sinceAnswerMs, 0.5),
    figure("2xx to stream, p99", sinceAnswerMs, 0.99),
  ];
}
