import type { Bench } from "../benchmark.ts";
import { connections, type Polling, pollInTurn, startLoad, type Target } from "../http/load.ts";
import { captureAnswer, headerOf, unchanged } from "../http/raw-connection.ts";
import { numbered, type RequestPlan } from "../http/requests.ts";
import { number, percent, ratioAtLeast } from "../reporting.ts";
import type { Nats } from "../system/backends.ts";
import { startEdge } from "../system/services.ts";
import { snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/snapshot-edge.ts";
import { contentOf, targetedFlags } from "../targeting/targeted-flags.ts";
import { allFlags, plansOf, postedUser } from "../targeting/ways-of-asking.ts";

/**
 * Measures the cost of metering and limits per request. An edge with them and an edge without them run on the
 * same core and are measured in turn.
 */
const flags = 100;
const rounds = 9;
/** A limit that no run reaches. Unlimited organizations get no rate limit headers. */
const limits = { requests_per_month: 1_000_000_000, sse_connections: 500, projects: null };
type Edges = { counted: Target; uncounted: Target };

export async function measureCountedPolling(bench: Bench, nats: Nats): Promise<void> {
  const constant = { flagsPerEnvironment: flags, limits };
  const content = snapshotContent(constant, { ...contentOf(targetedFlags(flags)), limits });
  await writeSnapshot(nats.url, content);
  const [key = "", targetedKey = ""] = content.scopes.map((scope) => scope.key);
  const program = "bench/src/usage/uncounted-edge-process.ts";
  const [counted, uncounted] = await Promise.all([
    startEdge(bench, { nats }),
    startEdge(bench, { nats, program }),
  ]);
  const load = await startLoad(bench);
  const whole = allFlags(key);
  const polls: readonly Polling[] = [
    { name: "200", status: 200, plans: [whole] },
    { name: "304", status: 304, plans: [await unchanged(counted.url, whole)] },
    { name: "POST with a context", status: 200, plans: plansOf(postedUser, targetedKey) },
  ];
  for (const polling of polls) {
    const { name } = polling;
    await assertCounted(polling, { counted, uncounted });
    bench.say(`${name}: with and without metering and limits, in turn`);
    const targets = { ours: counted, bare: uncounted };
    const { ours, bare } = await pollInTurn(bench, load, { rounds, polling, targets });
    const both = [ours, bare] as const;
    const what = `${name}: requests per second vs. no metering and limits`;
    bench.compare(what, "/s", both, "perSecond", ratioAtLeast(0.97));
    bench.compare(`${name}: CPU per request`, "µs", both, "cpuMicroseconds");
    bench.note`${name}: median latency of ${rounds} rounds at ${connections} connections: ${number(ours.medianLatencyMs)} and ${number(bare.medianLatencyMs)} ms. CPU of the edges: ${percent(ours.serverBusy)} and ${percent(bare.serverBusy)}.`;
  }
  await Promise.all([counted.stop(), uncounted.stop()]);
}

/** Verifies that only the first edge sends rate limit headers. */
async function assertCounted({ plans }: Polling, { counted, uncounted }: Edges): Promise<void> {
  const plan = numbered(plans[0] as RequestPlan, 0);
  const limitOf = async ({ url }: Target) =>
    headerOf(await captureAnswer(url, plan), "ratelimit-policy");
  if ((await limitOf(counted)) === "")
    throw new Error("the edge with limits sends no RateLimit headers");
  if ((await limitOf(uncounted)) !== "")
    throw new Error("the edge without limits sends RateLimit headers");
}
