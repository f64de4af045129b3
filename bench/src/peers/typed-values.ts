import type { Bench } from "../benchmark.ts";
import { type Load, pollInTurn, type Sample, type Target } from "../http/load.ts";
import type { RequestPlan } from "../http/requests.ts";
import { type Goal, number, percent, ratioAtLeast } from "../reporting.ts";
import type { Postgres } from "../system/backends.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { assertTargeted } from "../targeting/assert-targeted.ts";
import { type AnyFlag, contentOf, targetedFlags, withColors } from "../targeting/targeted-flags.ts";
import { ofrepBulk, plansOf } from "../targeting/ways-of-asking.ts";
import { assertPeer } from "./assert-peer.ts";
import { type BuiltPeerName, buildPeer } from "./built-peers.ts";
import { assertFrontendApi, frontendApi } from "./frontend-api.ts";
import { startFlagd, startRelayProxy } from "./ofrep-servers.ts";
import { startUnleashEdge } from "./unleash-edge.ts";
import { startUnleash } from "./unleash-server.ts";

type Peer = {
  name: string;
  server: Target & { plans: readonly RequestPlan[] };
  /** Mean size of a response. */
  bytes: number;
  goal?: Goal | undefined;
};

const flagCount = 100;
const quickFlagCount = 30;

/** Compares the bulk evaluation by OFREP of an edge with servers in Go and Rust. */
export async function compareTypedValues(
  bench: Bench,
  { postgres, load }: { postgres: Postgres; load: Load },
): Promise<void> {
  const flags = withColors(targetedFlags(bench.quick ? quickFlagCount : flagCount));
  const started = [
    await startUnleashPeer(bench, { postgres, flags }),
    await startOfrepPeer(bench, "GO Feature Flag", {
      ...{ flags, start: startRelayProxy, goal: ratioAtLeast(5) },
    }),
    await startOfrepPeer(bench, "flagd-core", { flags, start: startFlagd }),
  ];
  const others = started.filter((peer) => peer !== undefined);
  if (others.length === 0) return;
  const edge = await startEdgePeer(bench, flags);
  const peers = [edge, ...others];
  const samples = await pollInTurn(bench, load, {
    ...{ rounds: 5, warmUpMs: 3_000, polling: { name: "", status: 200, plans: [] } },
    targets: Object.fromEntries(peers.map(({ name, server }) => [name, server])),
  });
  report(bench, `${flags.length} flags, a third typed`, { edge, others, samples });
  await Promise.all(peers.map(({ server }) => server.stop()));
}

async function startEdgePeer(bench: Bench, flags: readonly AnyFlag[]): Promise<Peer> {
  const { edge, key } = await startSnapshotEdge(bench, contentOf(flags));
  const bytes = await assertTargeted(edge.url, { way: ofrepBulk, key, flags });
  return { name: "edge", server: { ...edge, plans: plansOf(ofrepBulk, key) }, bytes };
}

/** Starts Unleash Edge with its upstream, which runs on the core of the load generator. */
async function startUnleashPeer(
  bench: Bench,
  { postgres, flags }: { postgres: Postgres; flags: readonly AnyFlag[] },
): Promise<Peer | undefined> {
  const path = buildPeer(bench, "Unleash Edge");
  if (path === undefined) return undefined;
  const upstream = await startUnleash(bench, { postgres, flags, core: "load" });
  const server = await startUnleashEdge(bench, path, upstream);
  const key = upstream.frontendToken;
  const bytes = await assertFrontendApi(server.url, { key, flags });
  const plans = plansOf(frontendApi, key);
  return { name: "Unleash Edge", server: { ...server, plans }, bytes, goal: ratioAtLeast(2.5) };
}

async function startOfrepPeer(
  bench: Bench,
  name: BuiltPeerName,
  {
    flags,
    start,
    goal,
  }: {
    flags: readonly AnyFlag[];
    start: (bench: Bench, path: string, flags: readonly AnyFlag[]) => Promise<Target>;
    goal?: Goal;
  },
): Promise<Peer | undefined> {
  const path = buildPeer(bench, name);
  if (path === undefined) return undefined;
  const server = await start(bench, path, flags);
  // These servers need no key, and ignore it.
  const key = "";
  const bytes = await assertPeer(server.url, { way: ofrepBulk, key, flags });
  return { name, server: { ...server, plans: plansOf(ofrepBulk, key) }, bytes, goal };
}

function report(
  bench: Bench,
  size: string,
  compared: { edge: Peer; others: readonly Peer[]; samples: Readonly<Record<string, Sample>> },
): void {
  const { edge, others, samples } = compared;
  const of = ({ name }: Peer) => samples[name] as Sample;
  for (const peer of others) {
    const pair = [of(edge), of(peer)] as const;
    const what = `${size}, OFREP vs. ${peer.name}`;
    bench.compare(`${what}: requests per second`, "/s", pair, "perSecond", peer.goal);
    bench.compare(`${what}: CPU per request`, "µs", pair, "cpuMicroseconds");
  }
  for (const peer of [edge, ...others]) {
    const { serverBusy, generatorBusy } = of(peer);
    bench.note`${size}, ${peer.name} used ${percent(serverBusy)} of its core, and the load generator ${percent(generatorBusy)} of the other core. A response has ${number(peer.bytes)} bytes on average.`;
  }
}
