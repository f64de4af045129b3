import type { Bench, Benchmark } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { below, number } from "../reporting.ts";
import { quantile } from "../statistics.ts";
import {
  type Case,
  measureBare,
  measureEdge,
  startChangingSystem,
} from "../streams/measured-streams.ts";
import { type OpenStreams, openStreams, rulesStream as stream } from "../streams/readers.ts";
import type { ClientsApi } from "./clients-process.ts";
import { installServerSdk } from "./installed-sdk.ts";

export const sdkStreamsBenchmark: Benchmark = {
  name: "sdk-streams",
  group: "sdk",
  pinned: true,
  summary: "delivery of a change to 1,000 rule-set streams of server SDKs on one edge",
  method:
    "All streams are of one environment with 100 flags, so that each receives every change. Changes are made one at a time by `PATCH`. 995 streams belong to minimal readers, which search the received bytes for the event, because 1,000 clients in processes on one core would measure themselves. Five streams belong to clients of the packed `@halyard/server-sdk`: their time ends with the event `change`, when the new rules are in memory. `PATCH to stream` is the time from sending the request; `2xx to stream` begins with the response. The response waits until the edge has the change, so an event can arrive before it. The quantiles include all streams and all changes. The edge has a core to itself; management, PostgreSQL, NATS and all readers share the other one. The notes compare with a `node:http` server that writes the same event to as many open responses.",
  run,
};

const flags = 100;
const clients = 5;
const fullCase: Case = { streams: 1_000, changes: 100, pauseMs: 50 };
const quickCase: Case = { streams: 30, changes: 3, pauseMs: 10 };

async function run(bench: Bench): Promise<void> {
  const each = bench.quick ? quickCase : fullCase;
  const sdk = installServerSdk(bench);
  const system = await startChangingSystem(bench, bench.quick ? 5 : flags);
  const { serverKey: key, environmentId } = system.tenant;
  const edge = await measureEdge(bench, each, {
    ...{ system, stream },
    async open(url) {
      const streams = each.streams - clients;
      const readers = await openStreams(bench, { urls: [url], key, streams, stream });
      // The edge writes to streams in the order of their opening, so the clients are the last ones.
      return [readers, await openClients(bench, { sdk, url, key })];
    },
  });
  const event = changeEvent(environmentId);
  const first = { ...edge.first, body: Buffer.from(event) };
  const note = "The bare server takes from its first write to the stream";
  await measureBare(bench, each, { first, event, stream, note });
  const timesOf = (origin: "sinceSendingMs" | "sinceAnswerMs", from = 0) =>
    edge.latencies.slice(from).flatMap((latencies) => latencies[origin]);
  const options = { goals: { p99: below(100) } };
  for (const [from, of] of ["all streams", "server SDK clients"].entries()) {
    bench.latencies(`${of}: PATCH to stream, `, timesOf("sinceSendingMs", from), options);
    bench.latencies(`${of}: 2xx to stream, `, timesOf("sinceAnswerMs", from), options);
  }
  bench.note`${each.streams - clients} minimal readers and ${clients} clients of the server SDK. The longest time from PATCH to a stream: ${number(quantile(timesOf("sinceSendingMs"), 1))} ms.`;
}

async function openClients(
  bench: Bench,
  options: { sdk: string; url: string; key: string },
): Promise<OpenStreams> {
  const program = "sdk/clients-process.ts";
  const { call, stop } = await startChild<ClientsApi>(bench, { program, core: "load" });
  await call.open({ ...options, count: clients });
  return { arm: () => call.arm(), arrivals: () => call.arrivals(), stop };
}

function changeEvent(environmentId: string): string {
  const state = { enabled: true, rollout_percentage: 100, targeting_rules: [], version: 2 };
  const data = { environment_id: environmentId, flags: { "checkout-flow-variant-0": state } };
  return `event: ruleset\nid: "0000000000000000000000"\ndata: ${JSON.stringify(data)}\n\n`;
}
