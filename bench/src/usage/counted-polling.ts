import type { Bench } from "../benchmark.ts";
import { connections, type Polling, percent, type Sample, sample } from "../http/beside-bare.ts";
import { captureAnswer, headerOf } from "../http/capture-answer.ts";
import { type Load, numbered, type RequestPlan, startLoad } from "../http/load.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import type { Nats } from "../system/backends.ts";
import { awaitReady, type Service, startEdge, startUncountedEdge } from "../system/services.ts";
import { joined, snapshotContent } from "../system/snapshot-content.ts";
import { writeSnapshot } from "../system/write-snapshot.ts";
import { flagState, type TargetedFlag, targetedFlags } from "../targeting/targeted-flags.ts";
import { plansOf, postedUser } from "../targeting/ways-of-asking.ts";

/**
 * Measures the cost of metering and limits per request. An edge with them and an edge without them run on the
 * same core and are measured in turn.
 */
const flags = 100;
const rounds = 9;
const warmUpMs = 1_500;
const measuredMs = 2_000;
const goal = 0.97;

/** A limit that no run reaches. Unlimited organizations get no rate limit headers. */
const limits = { requests_per_month: 1_000_000_000, sse_connections: 500, projects: null };

export async function measureCountedPolling(bench: Bench, nats: Nats) {
  const polls = await writeFlags(nats);
  const core = bench.cores?.server;
  const counted = await startEdge(bench, { natsUrl: nats.url, core });
  const uncounted = await startUncountedEdge(bench, { natsUrl: nats.url, core });
  await Promise.all([counted, uncounted].map(awaitReady));
  const load = await startLoad(bench);
  const figures: Figure[] = [];
  const notes: string[] = [];
  for (const ask of polls) {
    const polling = await ask(counted);
    await assertCounted(polling, { counted, uncounted });
    bench.say(`${polling.name}: with and without metering and limits, in turn`);
    const measured = await inTurn(bench, { load, polling, counted, uncounted });
    figures.push(...figuresOf(polling, measured));
    notes.push(noteOf(polling, measured));
  }
  await Promise.all([counted, uncounted].map(({ child }) => child.stop()));
  return { figures, notes };
}

/** Requests for flags that are the same for everyone, and for flags that depend on the user. */
async function writeFlags(nats: Nats): Promise<((edge: Service) => Promise<Polling>)[]> {
  const constant = snapshotContent({ environments: 1, flagsPerEnvironment: flags, limits });
  const targets = targetedFlags(flags);
  const targeted = snapshotContent({
    environments: 1,
    flagsPerEnvironment: flags,
    flagState: (index) => flagState(targets[index] as TargetedFlag),
    limits,
  });
  await writeSnapshot(nats.url, joined(constant, targeted));
  const headers = { Authorization: `Bearer ${constant.key}` };
  const whole: RequestPlan = { method: "GET", path: "/api/v1/sdk/flags", headers };
  return [
    async () => ({ name: "200", status: 200, plans: [whole] }),
    async (edge) => {
      const etag = headerOf(await captureAnswer(edge.url, whole), "etag");
      const plan = { ...whole, headers: { ...headers, "If-None-Match": etag } };
      return { name: "304", status: 304, plans: [plan] };
    },
    async () => ({
      name: "POST with a context",
      status: 200,
      plans: plansOf(postedUser, targeted.key),
    }),
  ];
}

type Edges = { counted: Service; uncounted: Service };

/** Verifies that only the first edge sends rate limit headers. */
async function assertCounted({ plans }: Polling, { counted, uncounted }: Edges): Promise<void> {
  const plan = numbered(plans[0] as RequestPlan, 0);
  const limitOf = async ({ url }: Service) =>
    headerOf(await captureAnswer(url, plan), "ratelimit-policy");
  if ((await limitOf(counted)) === "")
    throw new Error("the edge with limits sends no RateLimit headers");
  if ((await limitOf(uncounted)) !== "")
    throw new Error("the edge without limits sends RateLimit headers");
}

type Measured = { counted: Sample; uncounted: Sample };

async function inTurn(
  bench: Bench,
  { load, polling, counted, uncounted }: Edges & { load: Load; polling: Polling },
): Promise<Measured> {
  const round = (edge: Service, measureMs: number) => () =>
    sample(load, { target: edge, polling, measureMs });
  for (const edge of [counted, uncounted]) await round(edge, bench.quick ? 50 : warmUpMs)();
  const measureMs = bench.quick ? 100 : measuredMs;
  return alternate(bench.quick ? 1 : rounds, {
    counted: round(counted, measureMs),
    uncounted: round(uncounted, measureMs),
  });
}

function figuresOf({ name }: Polling, { counted, uncounted }: Measured): Figure[] {
  return [
    {
      what: `${name}: requests per second vs. no metering and limits`,
      unit: "/s",
      measured: counted.perSecond,
      baseline: uncounted.perSecond,
      goal: { of: "ratio", atLeast: goal },
    },
    {
      what: `${name}: CPU per request`,
      unit: "µs",
      measured: counted.cpuMicroseconds,
      baseline: uncounted.cpuMicroseconds,
    },
  ];
}

function noteOf({ name }: Polling, { counted, uncounted }: Measured): string {
  return (
    `${name}: median latency of ${rounds} rounds at ${connections} connections: ` +
    `${number(counted.medianLatencyMs)} and ${number(uncounted.medianLatencyMs)} ms. CPU of ` +
    `the edges: ${percent(counted.serverBusy)} and ${percent(uncounted.serverBusy)}.`
  );
}
