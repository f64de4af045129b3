import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { type CapturedAnswer, captureAnswer, headersWithout } from "../http/capture-answer.ts";
import { startChild } from "../processes/child-process.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { quantile } from "../statistics.ts";
import { startNats, startPostgres } from "../system/backends.ts";
import { awaitReady, startEdge, startManagement } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";
import { startReaders } from "./readers.ts";
import { settledBytes } from "./settled-memory.ts";

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
/** Changes that warm up the code. */
const warmUpChanges = 5;
const kilobyte = 1_000;

type Case = {
  streams: number;
  changes: number;
  pauseMs: number;
  goalMs: { median?: number; p99: number };
  /** Measures memory. With few streams, other memory dominates. */
  memory: boolean;
};

const cases: readonly Case[] = [
  { streams: 1_000, changes: 100, pauseMs: 50, goalMs: { median: 10, p99: 50 }, memory: false },
  { streams: 10_000, changes: 40, pauseMs: 200, goalMs: { p99: 500 }, memory: true },
];

const quickCases: readonly Case[] = [
  { streams: 50, changes: 3, pauseMs: 10, goalMs: { median: 10, p99: 50 }, memory: true },
];

type System = {
  managementUrl: string;
  natsUrl: string;
  tenant: Tenant;
  /** Counts over all cases, so that each request is a change. */
  changesMade: number;
};

async function run(bench: Bench): Promise<Outcome> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const management = await startManagement(bench, { postgres, nats, core: bench.cores?.load });
  const tenant = await createTenant(management.url, bench.quick ? 5 : flags);
  const system = { managementUrl: management.url, natsUrl: nats.url, tenant, changesMade: 0 };
  const figures: Figure[] = [];
  const notes: string[] = [];
  for (const each of bench.quick ? quickCases : cases) {
    bench.say(`${each.streams} streams: the edge`);
    const edge = await measureEdge(bench, each, system);
    bench.say(`${each.streams} streams: the bare server`);
    const bare = await measureBare(bench, each, { first: edge.first, event: edge.event });
    figures.push(...latencyFigures(each, edge));
    if (each.memory) figures.push(...memoryFigures(each, edge.memory, bare.memory));
    notes.push(
      `${each.streams.toLocaleString("en-US")} streams: the bare server takes from its first write to the ` +
        `client: median ${number(quantile(bare.latenciesMs, 0.5))} ms, ` +
        `p99 ${number(quantile(bare.latenciesMs, 0.99))} ms.`,
    );
  }
  return { figures, notes, servers: { PostgreSQL: postgres.version, NATS: nats.version } };
}

type Memory = { idleBytes: number; openBytes: number };

async function measureEdge(bench: Bench, each: Case, system: System) {
  const { natsUrl, tenant } = system;
  const edge = await startEdge(bench, { natsUrl, core: bench.cores?.server });
  await awaitReady(edge);
  const idleBytes = await settledBytes(bench, edge.child.pid);
  const readers = await startReaders(bench);
  await readers.open(edge.url, tenant.clientKey, each.streams);

  const sinceAnswerMs: number[] = [];
  const sinceSendingMs: number[] = [];
  for (let count = 0; count < warmUpChanges + each.changes; count += 1) {
    await readers.arm();
    const { sentMs, answeredMs } = await change(system);
    for (const arrivedMs of await readers.arrivals()) {
      if (count < warmUpChanges) continue;
      sinceAnswerMs.push(arrivedMs - answeredMs);
      sinceSendingMs.push(arrivedMs - sentMs);
    }
    await delay(each.pauseMs);
  }
  const openBytes = await settledBytes(bench, edge.child.pid);
  const first = await captureAnswer(edge.url, streamRequest(tenant));
  await readers.stop();
  await edge.child.stop();
  const event = `event: flags\nid: "0000000000000000000000"\ndata: {"flags":{"checkout-flow-variant-0":true}}\n\n`;
  return { sinceAnswerMs, sinceSendingMs, memory: { idleBytes, openBytes }, first, event };
}

function streamRequest(tenant: Tenant) {
  const headers = { Authorization: `Bearer ${tenant.clientKey}` };
  return { method: "GET", path: "/api/v1/sdk/stream", headers };
}

/** Toggles one flag: enables all flags in turn, then disables them. */
async function change(system: System) {
  const { managementUrl, tenant } = system;
  const flagId = tenant.flagIds[system.changesMade % tenant.flagIds.length];
  const enabled = Math.floor(system.changesMade / tenant.flagIds.length) % 2 === 0;
  system.changesMade += 1;
  const sentMs = nowMs();
  const response = await fetch(`${managementUrl}/api/v1/flags/${flagId}`, {
    method: "PATCH",
    headers: {
      authorization: `Bearer ${tenant.serverKey}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ enabled }),
  });
  const answeredMs = nowMs();
  const text = await response.text();
  if (response.status !== 200) throw new Error(`PATCH: ${response.status} ${text}`);
  return { sentMs, answeredMs };
}

async function measureBare(
  bench: Bench,
  each: Case,
  { first, event }: { first: CapturedAnswer; event: string },
) {
  const server = await startChild(bench, {
    program: join(import.meta.dirname, "bare-stream-server.ts"),
    core: bench.cores?.server,
  });
  const { url } = server.greeting as { url: string };
  await server.ask({
    kind: "answer",
    headers: headersWithout(first, ["date"]),
    firstEvents: first.body.toString(),
  });
  const idleBytes = await settledBytes(bench, server.pid);
  const readers = await startReaders(bench);
  await readers.open(url, "unused", each.streams);

  const latenciesMs: number[] = [];
  for (let count = 0; count < warmUpChanges + each.changes; count += 1) {
    await readers.arm();
    const { begunMs } = (await server.ask({ kind: "broadcast", event })) as { begunMs: number };
    for (const arrivedMs of await readers.arrivals())
      if (count >= warmUpChanges) latenciesMs.push(arrivedMs - begunMs);
    await delay(each.pauseMs);
  }
  const openBytes = await settledBytes(bench, server.pid);
  await readers.stop();
  await server.stop();
  return { latenciesMs, memory: { idleBytes, openBytes } };
}

function latencyFigures(
  { streams, goalMs }: Case,
  { sinceAnswerMs, sinceSendingMs }: { sinceAnswerMs: number[]; sinceSendingMs: number[] },
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
