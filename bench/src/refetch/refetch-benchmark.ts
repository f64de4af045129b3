import { setTimeout as delay } from "node:timers/promises";
import type { Bench, Benchmark } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import { count as amount, below, type Goal, number, ratioBelow } from "../reporting.ts";
import { quantile } from "../statistics.ts";
import { startBackends } from "../system/backends.ts";
import { type Service, startEdge, startManagement } from "../system/services.ts";
import { createTenant, patchFlag, type Tenant } from "../system/tenant.ts";
import {
  flagState,
  type TargetedFlag,
  targetedFlags,
  userOf,
} from "../targeting/targeted-flags.ts";
import { contextHeader } from "../targeting/ways-of-asking.ts";
import { nowMs } from "../time.ts";
import type { HerdApi } from "./herd-process.ts";
import type { Poll, SteadyPollApi } from "./steady-poll-process.ts";

const clients = 1_000;

export const refetchBenchmark: Benchmark = {
  name: "refetch",
  pinned: true,
  summary: `refetches of ${amount(clients)} OpenFeature clients after a change, and a client that polls meanwhile`,
  method:
    "1,000 clients evaluate 100 flags over OFREP, open the event stream, and evaluate again 50 ms after each `refetchEvaluation`, as OpenFeature's web provider does. A flag changes for everyone, so that 1,000 evaluations arrive at one edge together. Another client polls all flags every 20 ms; its latency during the refetches is compared with its latency before. A poll counts from the time at which it was due.",
  run,
};

const flags = 100;
const pollIntervalMs = 20;
const warmUpChanges = 3;
/** Users perceive shorter polls as immediate. Most polls wait for a few refetches at most, not for all of them. */
const goals: { median: Goal; p99: Goal } = { median: ratioBelow(3), p99: below(100) };
const full = { clients, changes: 40, quietMs: 10_000, pauseMs: 300 };
const quick = { clients: 50, changes: 2, quietMs: 300, pauseMs: 100 };

async function run(bench: Bench): Promise<void> {
  const backends = await startBackends(bench);
  const management = await startManagement(bench, backends);
  const targeted = targetedFlags(flags);
  const tenant = await createTenant(management.url, flags, (index) =>
    flagState(targeted[index] as TargetedFlag),
  );
  const edge = await startEdge(bench, backends);
  await measure(bench, { managementUrl: management.url, tenant, edge });
}

/** A change, from its 2xx to the last of its refetches. */
type Wave = { answeredMs: number; firstMs: number; lastMs: number; errors: number };

async function measure(
  bench: Bench,
  { managementUrl, tenant, edge }: { managementUrl: string; tenant: Tenant; edge: Service },
): Promise<void> {
  const sizes = bench.quick ? quick : full;
  const start = <Api>(program: string) => startChild<Api>(bench, { program, core: "load" });
  const poll = await start<SteadyPollApi>("refetch/steady-poll-process.ts");
  const herd = await start<HerdApi>("refetch/herd-process.ts");
  await herd.call.open({ url: edge.url, key: tenant.clientKey, clients: sizes.clients });

  const waves: Wave[] = [];
  /** Toggles a flag that is the same for everyone, so that the values of all clients change. */
  const makeWave = async (count: number): Promise<Wave> => {
    await herd.call.arm();
    const change = { number: 0, enabled: count % 2 === 1 };
    const { answeredMs } = await patchFlag(managementUrl, tenant, change);
    const { moments, errors } = await herd.call.refetches();
    return { answeredMs, firstMs: Math.min(...moments), lastMs: Math.max(...moments), errors };
  };
  for (let count = 0; count < warmUpChanges; count += 1) await makeWave(count);

  const plan = contextHeader.plan(userOf(0), tenant.clientKey);
  await poll.call.begin({ url: edge.url, plan, intervalMs: pollIntervalMs });
  await delay(sizes.quietMs);
  const quietUntilMs = nowMs();
  for (let count = 0; count < sizes.changes; count += 1) {
    waves.push(await makeWave(warmUpChanges + count));
    await delay(sizes.pauseMs);
  }
  const polls = await poll.call.end();
  const isDuring = ({ dueMs }: Poll) =>
    waves.some(({ answeredMs, lastMs }) => dueMs >= answeredMs && dueMs <= lastMs);
  const latency = ({ latencyMs }: Poll) => latencyMs;
  const quietMs = polls.filter(({ dueMs }) => dueMs < quietUntilMs).map(latency);
  const duringMs = polls.filter(isDuring).map(latency);
  const untilLastMs = waves.map(({ answeredMs, lastMs }) => lastMs - answeredMs);
  const untilFirstMs = waves.map(({ answeredMs, firstMs }) => firstMs - answeredMs);
  const errors =
    waves.reduce((sum, wave) => sum + wave.errors, 0) +
    polls.filter(({ status }) => status !== 200).length;
  bench.latencies("2xx to the last refetch, ", untilLastMs, { of: ["median", "maximum"] });
  bench.latencies("poll during refetches vs. before: ", duringMs, {
    ...{ of: ["median", "p99", "maximum"], baselineMs: quietMs, goals },
  });
  bench.figure("errors", "", errors, { goal: below(1) });
  bench.note`${waves.length} changes with ${sizes.clients} refetches each. The first response came ${number(quantile(untilFirstMs, 0.5))} ms after the 2xx (median). One poll every ${pollIntervalMs} ms: ${quietMs.length} before and ${duringMs.length} during the refetches.`;
}
