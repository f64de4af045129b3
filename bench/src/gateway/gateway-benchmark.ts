import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Bench, Benchmark } from "../benchmark.ts";
import { type Load, type Polling, pollInTurn, startLoad, type Target } from "../http/load.ts";
import { unchanged } from "../http/raw-connection.ts";
import { authorized, type RequestPlan, requestBytes } from "../http/requests.ts";
import { buildPeer } from "../peers/built-peers.ts";
import { assertFrontendApi, frontendApi } from "../peers/frontend-api.ts";
import { installPeers, peerVersion } from "../peers/peers-package.ts";
import { startUnleashEdge } from "../peers/unleash-edge.ts";
import { startUnleash } from "../peers/unleash-server.ts";
import { startChild } from "../processes/child-process.ts";
import { residentBytes } from "../processes/process-usage.ts";
import { below, number, percent, ratioBelow } from "../reporting.ts";
import { alternate } from "../statistics.ts";
import { startPostgres } from "../system/backends.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { contentOf, type TargetedFlag, targetedFlags } from "../targeting/targeted-flags.ts";
import { allFlags, contextHeader, ofrepSingle, plansOf } from "../targeting/ways-of-asking.ts";
import type { OpenLoop } from "./open-loop-process.ts";
import { startPlainProxy, startProxy } from "./proxy.ts";

export const gatewayBenchmark: Benchmark = {
  name: "gateway",
  pinned: true,
  summary: "requests and streams through HAProxy as it is deployed, vs. the edge alone",
  method:
    "HAProxy with the generated configuration and the edge share one core; the load generator has the other. The baseline is the edge alone, asked in turn. 64 keep-alive connections, 100 flags. The CPU is that of HAProxy alone beside that of the edge alone, for each request. For the latency, another generator sends requests at a fixed rate, half of what the path can do, and counts from the moment at which each was due. With Cargo, which builds Unleash Edge, the path that Unleash documents follows with the same flags: the same HAProxy with a plain configuration, then Unleash Edge in the mode `edge` with a token for its first copy, both on the shared core, and unleash-server on the other. Its frontend API gets a new user in every request, as the `X-User-Context` of ours does. The benchmark verifies that both return the same values of all constant flags and rules.",
  run,
};

const flagCount = 100;

async function run(bench: Bench): Promise<void> {
  const targeted = targetedFlags(flagCount);
  const { edge, key } = await startSnapshotEdge(bench, contentOf(targeted));
  const path = await startProxy(bench, edge);
  const load = await startLoad(bench);
  const oneFlag = ofrepSingle((targeted[1] as TargetedFlag).key);
  const pollings: readonly Polling[] = [
    { name: "200", status: 200, plans: [allFlags(key)] },
    { name: "304", status: 304, plans: [await unchanged(edge.url, allFlags(key))] },
    { name: "X-User-Context", status: 200, plans: plansOf(contextHeader, key) },
    { name: "one flag by OFREP", status: 200, plans: plansOf(oneFlag, key) },
  ];
  let capacity = 0;
  for (const polling of pollings) {
    const samples = await pollInTurn(bench, load, { rounds: 5, polling, targets: { path, edge } });
    const both = [samples.path, samples.edge] as const;
    const { name } = polling;
    bench.compare(`${name}: requests per second through the gateway`, "/s", both, "perSecond");
    const cpu = `${name}: CPU of the gateway for each request vs. the edge`;
    bench.compare(cpu, "µs", both, "cpuMicroseconds", ratioBelow(1));
    if (name === "200") capacity = samples.path.perSecond;
  }
  await comparePeer(bench, load, { path, plans: plansOf(contextHeader, key), flags: targeted });
  await load.stop();
  await compareLatencies(bench, { path, edge }, { perSecond: capacity / 2, plan: allFlags(key) });
  await measureStreams(bench, path, key);
}

/** Measures Unleash Edge behind HAProxy in turn with our path. */
async function comparePeer(
  bench: Bench,
  load: Load,
  {
    path,
    plans,
    flags,
  }: { path: Target; plans: readonly RequestPlan[]; flags: readonly TargetedFlag[] },
): Promise<void> {
  const program = buildPeer(bench, "Unleash Edge");
  if (program === undefined) return;
  installPeers();
  const postgres = await startPostgres(bench);
  const unleash = await startUnleash(bench, { postgres, flags, core: "load" });
  const unleashEdge = await startUnleashEdge(bench, program, unleash);
  const peer = await startPlainProxy(bench, unleashEdge);
  bench.version("unleash-server", peerVersion("unleash-server"));
  const bytes = await assertFrontendApi(peer.url, { key: unleash.frontendToken, flags });
  const samples = await pollInTurn(bench, load, {
    ...{ rounds: 5, polling: { name: "", status: 200, plans } },
    targets: { path, peer: { ...peer, plans: plansOf(frontendApi, unleash.frontendToken) } },
  });
  const what = "X-User-Context vs. Unleash Edge behind HAProxy";
  const both = [samples.path, samples.peer] as const;
  bench.compare(`${what}: requests per second`, "/s", both, "perSecond");
  bench.compare(`${what}: CPU of HAProxy for each request`, "µs", both, "cpuMicroseconds");
  bench.compare(`${what}: CPU of both processes`, "µs", both, "pathCpuMicroseconds");
  bench.note`A response of Unleash Edge has the flags that are on, with variants, in ${number(bytes)} bytes on average.`;
  for (const [name, { generatorBusy }] of Object.entries(samples))
    bench.note`The load generator used ${percent(generatorBusy)} of its core for the ${name}.`;
  await Promise.all([peer, unleashEdge, unleash].map((server) => server.stop()));
}

const connections = 32;

async function compareLatencies(
  bench: Bench,
  targets: { path: Target; edge: Target },
  { perSecond, plan }: { perSecond: number; plan: RequestPlan },
): Promise<void> {
  const generator = await startChild<OpenLoop>(bench, {
    ...{ program: "gateway/open-loop-process.ts", core: "load" },
  });
  const order = { connections, perSecond, request: plan, expectedStatus: 200 };
  const durationMs = bench.quick ? 200 : 4_000;
  const ask =
    ({ url }: Target) =>
    () =>
      generator.call.run({ ...order, url, durationMs });
  const { path, edge } = await alternate(bench, 5, {
    path: ask(targets.path),
    edge: ask(targets.edge),
  });
  await generator.stop();
  const both = [path, edge] as const;
  bench.compare("200, at half of the path's capacity: median latency", "ms", both, "medianMs");
  bench.compare(
    ...(["200, at half of the path's capacity: p99 latency", "ms"] as const),
    ...([both, "p99Ms", ratioBelow(1.5)] as const),
  );
}

/** Opens streams through the gateway, and reports its memory for each. */
async function measureStreams(bench: Bench, path: Target, key: string): Promise<void> {
  const streams = bench.quick ? 20 : 6_000;
  const { hostname, port, host } = new URL(path.url);
  const plan = { method: "GET", path: "/api/v1/sdk/stream", headers: authorized(key) };
  const bytes = requestBytes(plan, host);
  const before = residentBytes(path.pid);
  const sockets: Socket[] = [];
  bench.afterwards(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let opened = 0; opened < streams; opened += 20) {
    const more = Array.from({ length: 20 }, () => connect(Number(port), hostname));
    sockets.push(...more);
    await Promise.all(
      more.map(async (socket) => {
        socket.write(bytes);
        await once(socket, "data");
        socket.resume();
      }),
    );
  }
  const perStream = (residentBytes(path.pid) - before) / streams / 1e3;
  bench.figure(`${streams} streams: memory of the gateway for each`, "kB", perStream, {
    goal: below(30),
  });
  for (const socket of sockets) socket.destroy();
}
