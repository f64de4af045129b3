import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";
import { startBareServer } from "../http/beside-bare.ts";
import { type CapturedAnswer, captureAnswer, headersWithout } from "../http/raw-connection.ts";
import { authorized } from "../http/requests.ts";
import { settledBytes } from "../processes/process-usage.ts";
import { number } from "../reporting.ts";
import { quantile } from "../statistics.ts";
import { startBackends } from "../system/backends.ts";
import { startEdge, startManagement } from "../system/services.ts";
import { createTenant, togglesInTurn } from "../system/tenant.ts";
import { type OpenStreams, openStreams, type StreamKind } from "./readers.ts";

/** Changes one flag at a time, and measures when each open stream has received the change. */
export type Case = { streams: number; changes: number; pauseMs: number };
type ChangingSystem = Awaited<ReturnType<typeof startChangingSystem>>;
const warmUpChanges = 5;

export async function startChangingSystem(bench: Bench, flags: number) {
  const backends = await startBackends(bench);
  const management = await startManagement(bench, backends);
  const tenant = await createTenant(management.url, flags);
  return { ...backends, management, tenant, toggle: togglesInTurn(management.url, tenant) };
}

export type Memory = { idleBytes: number; openBytes: number };
/** Times of all changes and streams, from sending the request and from its response. */
export type Latencies = { sinceSendingMs: number[]; sinceAnswerMs: number[] };

/** Returns the latencies of each group of streams. */
export async function measureEdge(
  bench: Bench,
  each: Case,
  options: {
    system: ChangingSystem;
    stream: StreamKind;
    /** Opens all streams, in groups that are measured separately. */
    open(edgeUrl: string): Promise<OpenStreams[]>;
  },
) {
  const { system, stream, open } = options;
  bench.say(`${each.streams} streams: the edge, then the bare server`);
  const edge = await startEdge(bench, system);
  const idleBytes = await settledBytes(bench, edge.pid);
  const groups = await open(edge.url);
  const latencies = groups.map((): Latencies => ({ sinceSendingMs: [], sinceAnswerMs: [] }));
  await changeRepeatedly(each, groups, system.toggle, (group, arrivedMs, times) => {
    latencies[group]?.sinceAnswerMs.push(arrivedMs - times.answeredMs);
    latencies[group]?.sinceSendingMs.push(arrivedMs - times.sentMs);
  });
  const openBytes = await settledBytes(bench, edge.pid);
  const headers = authorized(system.tenant.serverKey);
  const first = await captureAnswer(edge.url, { method: "GET", path: stream.path, headers });
  for (const streams of groups) await streams.stop();
  await edge.stop();
  return { latencies, memory: { idleBytes, openBytes }, first };
}

/**
 * Measures a `node:http` server that writes the event to as many open responses. Adds a note and returns the memory.
 */
export async function measureBare(
  bench: Bench,
  each: Case,
  options: { first: CapturedAnswer; event: string; stream: StreamKind; note: string },
): Promise<Memory> {
  const { first, event, stream, note } = options;
  const server = await startBareServer(bench);
  await server.call.stream({
    headers: headersWithout(first, ["date"]),
    firstEvents: first.body.toString(),
  });
  const idleBytes = await settledBytes(bench, server.pid);
  const { streams } = each;
  const opening = { urls: [server.greeting.url], key: "unused", streams, stream };
  const readers = await openStreams(bench, opening);
  const latenciesMs: number[] = [];
  const broadcast = () => server.call.broadcast(event);
  await changeRepeatedly(each, [readers], broadcast, (_, arrivedMs, beganMs) =>
    latenciesMs.push(arrivedMs - beganMs),
  );
  const openBytes = await settledBytes(bench, server.pid);
  await readers.stop();
  await server.stop();
  const [median, p99] = [quantile(latenciesMs, 0.5), quantile(latenciesMs, 0.99)];
  bench.note`${note}: median ${number(median)} ms, p99 ${number(p99)} ms.`;
  return { idleBytes, openBytes };
}

async function changeRepeatedly<Times>(
  { changes, pauseMs }: Case,
  groups: readonly OpenStreams[],
  change: () => Promise<Times>,
  take: (group: number, arrivedMs: number, times: Times) => void,
): Promise<void> {
  for (let count = 0; count < warmUpChanges + changes; count += 1) {
    await Promise.all(groups.map((streams) => streams.arm()));
    const times = await change();
    for (const [group, streams] of groups.entries())
      for (const arrivedMs of await streams.arrivals())
        if (count >= warmUpChanges) take(group, arrivedMs, times);
    await delay(pauseMs);
  }
}
