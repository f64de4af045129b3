import { setTimeout as delay } from "node:timers/promises";
import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { nowMs } from "../clock.ts";
import type { Figure, Goal } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { quantile } from "../statistics.ts";
import { startNats, startPostgres } from "../system/backends.ts";
import { awaitReady, type Service, startEdge, startManagement } from "../system/services.ts";
import { createTenant, type Tenant } from "../system/tenant.ts";
import { flagState, targetedFlags } from "../targeting/targeted-flags.ts";
import { userOf } from "../targeting/users.ts";
import { contextHeader } from "../targeting/ways-of-asking.ts";
import { startHerd } from "./herd.ts";
import { type Poll, startSteadyPoll } from "./steady-poll.ts";

const clients = 1_000;

export const refetchBenchmark: Benchmark = {
  name: "refetch",
  pinned: true,
  summary: `refetches of ${clients.toLocaleString("en-US")} OpenFeature clients after a change, and a client that polls meanwhile`,
  method:
    "1,000 clients evaluate 100 flags over OFREP, open the event stream, and evaluate again 50 ms after each `refetchEvaluation`, as OpenFeature's web provider does. " +
    "A flag changes for everyone, so that 1,000 evaluations arrive at one edge together. " +
    "Another client polls all flags every 20 ms; its latency during the refetches is compared with its latency before. A poll counts from the time at which it was due.",
  run,
};

const flags = 100;
const pollIntervalMs = 20;
const warmUpChanges = 3;

/** Goal for the p99 latency of a poll. Users perceive shorter times as immediate. */
const maxPollMs = 100;
/** Goal for the ratio of medians: most polls wait for a few refetches at most, not for all of them. */
const maxQuietRatio = 3;

type Sizes = { clients: number; changes: number; quietMs: number; pauseMs: number };
const full: Sizes = { clients, changes: 40, quietMs: 10_000, pauseMs: 300 };
const quick: Sizes = { clients: 50, changes: 2, quietMs: 300, pauseMs: 100 };

async function run(bench: Bench): Promise<Outcome> {
  const sizes = bench.quick ? quick : full;
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  const management = await startManagement(bench, { postgres, nats, core: bench.cores?.load });
  const targeted = targetedFlags(flags);
  const tenant = await createTenant(management.url, flags, (index) =>
    flagState(targeted[index] as (typeof targeted)[number]),
  );
  const edge = await startEdge(bench, { natsUrl: nats.url, core: bench.cores?.server });
  await awaitReady(edge);
  const system = { managementUrl: management.url, tenant, edge };
  return {
    ...outcomeOf(sizes, await measure(bench, sizes, system)),
    servers: { PostgreSQL: postgres.version, NATS: nats.version },
  };
}

type System = { managementUrl: string; tenant: Tenant; edge: Service };

/** A change, from its 2xx to the last of its refetches. */
type Wave = { answeredMs: number; firstMs: number; lastMs: number; errors: number };

async function measure(bench: Bench, sizes: Sizes, system: System) {
  const { edge, tenant } = system;
  const poll = await startSteadyPoll(bench);
  const plan = contextHeader.plan(userOf(0), tenant.clientKey);
  const herd = await startHerd(bench);
  await herd.open(edge.url, tenant.clientKey, sizes.clients);
  bench.say(`${sizes.clients} streams are open`);

  const waves: Wave[] = [];
  const makeWave = async (count: number) => {
    await herd.arm();
    const answeredMs = await change(system, count);
    const { moments, errors } = await herd.refetches();
    return { answeredMs, firstMs: Math.min(...moments), lastMs: Math.max(...moments), errors };
  };
  for (let count = 0; count < warmUpChanges; count += 1) await makeWave(count);

  await poll.begin({ url: edge.url, plan, intervalMs: pollIntervalMs });
  await delay(sizes.quietMs);
  const quietUntilMs = nowMs();
  for (let count = 0; count < sizes.changes; count += 1) {
    waves.push(await makeWave(warmUpChanges + count));
    await delay(sizes.pauseMs);
  }
  return { waves, quietUntilMs, polls: await poll.end() };
}

/** Toggles a flag that is the same for everyone, so that the values of all clients change. */
async function change({ managementUrl, tenant }: System, count: number): Promise<number> {
  const response = await fetch(`${managementUrl}/api/v1/flags/${tenant.flagIds[0]}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${tenant.serverKey}`, "content-type": "application/json" },
    body: JSON.stringify({ enabled: count % 2 === 1 }),
  });
  const answeredMs = nowMs();
  const text = await response.text();
  if (response.status !== 200) throw new Error(`PATCH: ${response.status} ${text}`);
  return answeredMs;
}

function outcomeOf(
  { clients: count }: Sizes,
  measured: { waves: readonly Wave[]; quietUntilMs: number; polls: readonly Poll[] },
): Pick<Outcome, "figures" | "notes"> {
  const { waves, quietUntilMs, polls } = measured;
  const isDuring = ({ dueMs }: Poll) =>
    waves.some(({ answeredMs, lastMs }) => dueMs >= answeredMs && dueMs <= lastMs);
  const quietMs = polls.filter(({ dueMs }) => dueMs < quietUntilMs).map((poll) => poll.latencyMs);
  const duringMs = polls.filter(isDuring).map((poll) => poll.latencyMs);
  const untilLastMs = waves.map(({ answeredMs, lastMs }) => lastMs - answeredMs);
  const untilFirstMs = waves.map(({ answeredMs, firstMs }) => firstMs - answeredMs);
  const errors =
    waves.reduce((sum, wave) => sum + wave.errors, 0) +
    polls.filter(({ status }) => status !== 200).length;
  const besideQuiet = (what: string, share: number, goal?: Goal): Figure => ({
    what: `poll during refetches vs. before: ${what}`,
    unit: "ms",
    measured: quantile(duringMs, share),
    baseline: quantile(quietMs, share),
    ...(goal === undefined ? {} : { goal }),
  });
  return {
    figures: [
      time("2xx to the last refetch, median", quantile(untilLastMs, 0.5)),
      time("2xx to the last refetch, maximum", quantile(untilLastMs, 1)),
      besideQuiet("median", 0.5, { of: "ratio", below: maxQuietRatio }),
      besideQuiet("p99", 0.99, { of: "measured", below: maxPollMs }),
      besideQuiet("maximum", 1),
      { what: "errors", unit: "", measured: errors, goal: { of: "measured", below: 1 } },
    ],
    notes: [
      `${waves.length} changes with ${count} refetches each. The first response came ` +
        `${number(quantile(untilFirstMs, 0.5))} ms after the 2xx (median). One poll every ` +
        `${pollIntervalMs} ms: ${quietMs.length} before and ${duringMs.length} during the refetches.`,
    ],
  };
}

function time(what: string, measured: number): Figure {
  return { what, unit: "ms", measured };
}
