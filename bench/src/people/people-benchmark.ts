import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { peopleBucket } from "@halyard/contracts";
import { jetstreamManager } from "@nats-io/jetstream";
import type { Bench, Benchmark } from "../benchmark.ts";
import { pollInTurn, startLoad } from "../http/load.ts";
import { startChild } from "../processes/child-process.ts";
import { below, count, number, ratioAtLeast, ratioBelow } from "../reporting.ts";
import { connectNats, startNats } from "../system/backends.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { nowMs } from "../time.ts";
import { writePeople } from "./people-content.ts";
import type { PeopleReader } from "./people-reader-process.ts";
import { type SignedInSystem, startSignedInSystem } from "./signed-in-system.ts";

export const peopleBenchmark: Benchmark = {
  name: "people",
  pinned: true,
  summary: "requests by session vs. by API key, memory of people, and sign-ins on every service",
  method:
    "**Authentication.** The same routes of usage-metering, by the session of an owner and by a server key of the same user, in turn. `404` is the usage of a flag that does not exist, which needs no database, so that authentication weighs most.\n\n" +
    "**Memory.** A process with nothing but the directory of people reads 100,000 people in 10,000 organizations. Each has a role in one project. The heap is compared with that before the read, after a garbage collection. A reconnect reads everything again, and the directory already has it.\n\n" +
    "**Sign-ins.** One after the other, by links of the operator, without other load. From the response with the session's cookie to the first accepted request on each service.\n\n" +
    "**Edges.** The benchmark counts the consumers of the people bucket in a NATS with an edge and no other service.",
  run,
};

const size = { people: 100_000, rounds: 9, signIns: 40 };
const quickSize = { people: 50, rounds: 1, signIns: 2 };

async function run(bench: Bench): Promise<void> {
  const system = await startSignedInSystem(bench);
  await measureAuthentication(bench, system);
  await measureSignIns(bench, system);
  await measureMemory(bench, { withSessions: false });
  await measureMemory(bench, { withSessions: true });
  await countConsumersOfEdge(bench);
}

async function measureAuthentication(bench: Bench, system: SignedInSystem): Promise<void> {
  const { metering, keyHeaders, signIn } = system;
  const { headers } = await signIn();
  const load = await startLoad(bench);
  const { rounds } = bench.quick ? quickSize : size;
  const plans = (path: string, withHeaders: Record<string, string>) => [
    { method: "GET", path, headers: withHeaders },
  ];
  const polls = [
    { name: "404", status: 404, path: `/api/v1/flags/${randomUUID()}/usage` },
    { name: "200", status: 200, path: "/api/v1/usage" },
  ];
  for (const { name, status, path } of polls) {
    const byKey = { ...metering, plans: plans(path, keyHeaders) };
    const bySession = { ...metering, plans: plans(path, headers) };
    const polling = { name, status, plans: byKey.plans };
    const targets = { bySession, byKey };
    const sides = await pollInTurn(bench, load, { rounds, polling, targets });
    const both = [sides.bySession, sides.byKey] as const;
    const what = `${name}, by session vs. by key`;
    bench.compare(`${what}: CPU per request`, "µs", both, "cpuMicroseconds", ratioBelow(1.05));
    bench.compare(`${what}: requests per second`, "/s", both, "perSecond", ratioAtLeast(0.95));
  }
}

async function measureSignIns(bench: Bench, { routes, signIn }: SignedInSystem): Promise<void> {
  const { signIns } = bench.quick ? quickSize : size;
  bench.say(`${signIns} sign-ins`);
  const services = Object.entries(routes).map(([name, url]) => ({
    ...{ name, url, tookMs: [] as number[] },
  }));
  for (let number = 0; number < signIns; number += 1) {
    const { signedInMs, headers } = await signIn();
    await Promise.all(
      services.map(async ({ url, tookMs }) => {
        await untilAccepted(url, headers);
        tookMs.push(nowMs() - signedInMs);
      }),
    );
  }
  for (const { name, tookMs } of services)
    bench.latencies(`sign-in to the first accepted request, ${name}: `, tookMs, {
      ...{ of: ["median", "maximum"], goals: { maximum: below(1_000) } },
    });
}

const pauseMs = 1;

async function untilAccepted(url: string, headers: Record<string, string>): Promise<void> {
  for (;;) {
    const response = await fetch(url, { headers });
    const text = await response.text();
    if (response.ok) return;
    if (response.status !== 401) throw new Error(`${url}: ${response.status} ${text}`);
    await delay(pauseMs);
  }
}

async function measureMemory(bench: Bench, { withSessions }: { withSessions: boolean }) {
  const { people } = bench.quick ? quickSize : size;
  const name = `${count(people)} people${withSessions ? " with sessions" : ""}`;
  bench.say(name);
  const nats = await startNats(bench);
  await writePeople(nats.url, { people, withSessions });
  const reader = await startChild<PeopleReader>(bench, {
    ...{ program: "people/people-reader-process.ts", core: "server" },
    nodeOptions: ["--expose-gc"],
  });
  const emptyBytes = await reader.call.heapBytes();
  const first = await reader.call.read({ natsUrl: nats.url });
  const bytes = ((await reader.call.heapBytes()) - emptyBytes) / people;
  const again = await reader.call.read({ natsUrl: nats.url });
  await reader.stop();
  await nats.stop();
  const goal = withSessions ? {} : { goal: below(1_000) };
  bench.figure(`${name}: memory of each`, "bytes", bytes, goal);
  const firstCpu = { baseline: first.cpuMs / 1e3 };
  bench.figure(`${name}: CPU of a reconnect vs. first read`, "s", again.cpuMs / 1e3, firstCpu);
  const firstBlock = { baseline: first.longestBlockMs };
  const block = `${name}: longest block of the event loop, reconnect vs. first read`;
  bench.figure(block, "ms", again.longestBlockMs, firstBlock);
  bench.note`${name}: the first read took ${number(first.tookMs / 1e3)} s, a reconnect ${number(again.tookMs / 1e3)} s.`;
}

async function countConsumersOfEdge(bench: Bench): Promise<void> {
  const { nats } = await startSnapshotEdge(bench, { flagsPerEnvironment: 1 });
  await writePeople(nats.url, { people: 1, withSessions: true });
  const manager = await jetstreamManager(await connectNats(bench, nats), { checkAPI: false });
  const { state } = await manager.streams.info(peopleBucket.streamName);
  bench.figure("consumers of an edge on the people bucket", "", state.consumer_count, {
    goal: below(1),
  });
}
