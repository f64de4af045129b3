import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import { type CapturedAnswer, captureAnswer, headersWithout } from "../http/capture-answer.ts";
import { startChild } from "../processes/child-process.ts";
import type { Nats, Postgres } from "../system/backends.ts";
import { startNats, startPostgres } from "../system/backends.ts";
import { awaitReady, startEdge, startManagement } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";
import { type OpenStreams, type StreamKind, startReaders } from "./readers.ts";
import { settledBytes } from "./settled-memory.ts";

/** Changes one flag at a time, and measures when each open stream has received the change. */
export type Case = { streams: number; changes: number; pauseMs: number };

export type ChangingSystem = {
  managementUrl: string;
  nats: Nats;
  postgres: Postgres;
  tenant: Tenant;
  /** Counts over all cases, so that each request is a change. */
  changesMade: number;
};

/** Changes that warm up the code. */
const warmUpChanges = 5;

export async function startChangingSystem(bench: Bench, flags: number): Promise<ChangingSystem> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const management = await startManagement(bench, { postgres, nats, core: bench.cores?.load });
  const tenant = await createTenant(management.url, flags);
  return { managementUrl: management.url, nats, postgres, tenant, changesMade: 0 };
}

export type Memory = { idleBytes: number; openBytes: number };

/** Times of all changes and streams, from sending the request and from its response. */
export type Latencies = { sinceSendingMs: number[]; sinceAnswerMs: number[] };

type EdgeOptions<Group extends string> = {
  system: ChangingSystem;
  stream: StreamKind;
  /** Opens all streams, in groups that are measured separately. */
  open(edgeUrl: string): Promise<Record<Group, OpenStreams>>;
};

export async function measureEdge<Group extends string>(
  bench: Bench,
  each: Case,
  { system, stream, open }: EdgeOptions<Group>,
) {
  const edge = await startEdge(bench, { natsUrl: system.nats.url, core: bench.cores?.server });
  await awaitReady(edge);
  const idleBytes = await settledBytes(bench, edge.child.pid);
  const groups = Object.entries(await open(edge.url)) as [Group, OpenStreams][];
  const latencies = Object.fromEntries(
    groups.map(([name]) => [name, { sinceSendingMs: [], sinceAnswerMs: [] }]),
  ) as unknown as Record<Group, Latencies>;

  for (let count = 0; count < warmUpChanges + each.changes; count += 1) {
    await Promise.all(groups.map(([, streams]) => streams.arm()));
    const { sentMs, answeredMs } = await change(system);
    for (const [name, streams] of groups)
      for (const arrivedMs of await streams.arrivals()) {
        if (count < warmUpChanges) continue;
        latencies[name].sinceAnswerMs.push(arrivedMs - answeredMs);
        latencies[name].sinceSendingMs.push(arrivedMs - sentMs);
      }
    await delay(each.pauseMs);
  }
  const openBytes = await settledBytes(bench, edge.child.pid);
  const headers = { Authorization: `Bearer ${system.tenant.serverKey}` };
  const first = await captureAnswer(edge.url, { method: "GET", path: stream.path, headers });
  for (const [, streams] of groups) await streams.stop();
  await edge.child.stop();
  return { latencies, memory: { idleBytes, openBytes }, first };
}

/** Toggles one flag: enables all flags in turn, then disables them. */
async function change(system: ChangingSystem) {
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

/** Measures a `node:http` server that writes the event to as many open responses. */
export async function measureBare(
  bench: Bench,
  each: Case,
  { first, event, stream }: { first: CapturedAnswer; event: string; stream: StreamKind },
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
  const readers = await startReaders(bench, stream);
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
