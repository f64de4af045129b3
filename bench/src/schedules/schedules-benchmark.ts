import type { Sql } from "@halyard/postgres";
import type { Bench, Benchmark } from "../benchmark.ts";
import { count as amount, below, number } from "../reporting.ts";
import { quantile } from "../statistics.ts";
import { flagKey, patchFlag } from "../system/tenant.ts";
import { until } from "../time.ts";
import {
  type Burst,
  type Cpu,
  measureBurst,
  measurePatches,
  openEffects,
  tomorrow,
} from "./burst.ts";
import { clients, setSchedules } from "./requests.ts";
import {
  type FlagStream,
  type SchedulingSystem,
  startSchedulingSystem,
} from "./scheduling-system.ts";

export const schedulesBenchmark: Benchmark = {
  name: "schedules",
  pinned: false,
  summary: "10,000 changes due in the same second, single changes, and 1,000,000 pending changes",
  method:
    "**10,000 at once.** 10,000 flags have a schedule for the same moment. `1 + 1` is one scheduler and one management process, `2 + 2` two of each. Lateness is `lateness_ms` of the API. The baseline applies the same changes with `PATCH`. Afterwards history and event log must contain each change exactly once.\n\n" +
    "**Single changes.** 200 changes at random times within 20 seconds, from the requested time to the event on a stream.\n\n" +
    "**1,000,000 pending.** Setting a schedule with 1,000,000 pending changes, compared with 1,000.",
  run,
};

const full = { changes: 10_000, single: 200, overMs: 20_000, leadMs: 2_000 };
const quick = { changes: 100, single: 10, overMs: 500, leadMs: 500 };

async function run(bench: Bench): Promise<void> {
  const { changes } = bench.quick ? quick : full;
  const system = await startSchedulingSystem(bench, changes);
  const readEffects = await openEffects(bench, system);
  const single = await measureSingle(bench, system);
  const patches = await measurePatches(system, { changes, action: "enable" });
  bench.say(`${changes} changes due at once: one scheduler, one management process`);
  const one = await measureBurst(system, { changes, action: "disable", readEffects });
  bench.say(`${changes} changes due at once: two of each`);
  await system.addReplicas();
  const two = await measureBurst(system, { changes, action: "enable", readEffects });

  burstFigures(bench, one, { patches, name: `${amount(changes)} at once, 1 + 1` });
  burstFigures(bench, two, { patches, name: `${amount(changes)} at once, 2 + 2` });
  bench.latencies("single changes, due to client vs. PATCH to client: ", single.scheduledMs, {
    of: ["median", "p99", "maximum"],
    baselineMs: single.patchedMs,
    goals: { p99: below(250) },
  });
  await measurePending(bench, system);
  bench.note`1 + 1 is one scheduler and one management process, 2 + 2 two of each. The baseline of both: ${clients} clients send the same changes as PATCH to one management process.`;
  bench.note`CPU time, 1 + 1: ${describeCpu(one.cpu)}.`;
  bench.note`CPU time, 2 + 2: ${describeCpu(two.cpu)}.`;
  bench.note`CPU time of the PATCH requests: ${describeCpu(patches.cpu)}.`;
}

/**
 * Enables flags by schedule at random times, without other load, then disables each by `PATCH`. All flags are
 * off afterwards. Returns the latencies from the due time to the stream, and from a `PATCH` to the stream.
 */
async function measureSingle(bench: Bench, system: SchedulingSystem) {
  const stream = system.streams[0] as FlagStream;
  const arrivedMs = (number: number) => stream.arrivedMs.get(flagKey(number)) ?? Number.NaN;
  const { single: count, overMs, leadMs } = bench.quick ? quick : full;
  // All schedules are set before the first one is due.
  const firstMs = Date.now() + leadMs;
  const dueMs = Array.from({ length: count }, () => firstMs + Math.floor(Math.random() * overMs));
  const at = (number: number) => new Date(dueMs[number] as number);
  stream.expect(true);
  await setSchedules(system, { count, action: "enable", at });
  await until("all scheduled changes arrived", async () => stream.arrivedMs.size === count);
  const scheduledMs = dueMs.map((ms, number) => arrivedMs(number) - ms);

  const patchedMs: number[] = [];
  const { url = "" } = system.managements[0] ?? {};
  for (let number = 0; number < count; number += 1) {
    stream.expect(false);
    const sentMs = Date.now();
    await patchFlag(url, system.tenant, { number, enabled: false });
    await until("the change arrived", async () => stream.arrivedMs.size === 1);
    patchedMs.push(arrivedMs(number) - sentMs);
  }
  return { scheduledMs, patchedMs };
}

function burstFigures(
  bench: Bench,
  burst: Burst,
  { name, patches }: { name: string; patches: { tookMs: number; cpu: Cpu } },
): void {
  const late = (share: number) => quantile(burst.latenessesMs, share) / 1e3;
  const seconds = (what: string, measured: number, compared = {}) =>
    bench.figure(`${name}: ${what}`, "s", measured, compared);
  const total = (cpu: Cpu) => Object.values(cpu).reduce((sum, each) => sum + each, 0);
  const baseline = patches.tookMs / 1e3;
  seconds("all applied vs. PATCH", late(1), { baseline, goal: below(20) });
  seconds("lateness, median", late(0.5));
  seconds("lateness, p99", late(0.99));
  seconds("all received by streams", burst.streamedMs / 1e3);
  seconds("all recorded", burst.recordedMs / 1e3);
  seconds("CPU time vs. PATCH", total(burst.cpu), { baseline: total(patches.cpu) });
  bench.figure(`${name}: missing or wrong entries and events`, "", burst.amiss, { goal: below(1) });
}

const few = 1_000;
const many = 1_000_000;
const quickMany = 50_000;

/** Measures the cost of setting a schedule with many pending ones, compared with few. */
async function measurePending(bench: Bench, system: SchedulingSystem): Promise<void> {
  const measure = async (pending: number) => {
    bench.say(`${amount(pending)} schedules pending`);
    await fillPending(system.admin, pending);
    const options = { count: bench.quick ? 20 : 300, connections: 1, action: "enable" } as const;
    return setSchedules(system, { ...options, at: tomorrow });
  };
  const baselineMs = await measure(few);
  const manyCount = bench.quick ? quickMany : many;
  const prefix = `${amount(manyCount)} pending vs. ${amount(few)}: set a schedule, `;
  bench.latencies(prefix, await measure(manyCount), { baselineMs });
}

function describeCpu(cpu: Cpu): string {
  return Object.entries(cpu)
    .map(([name, seconds]) => `${name} ${number(seconds)} s`)
    .join(", ");
}

/** Number of projects that share the schedules, with one environment each. */
const projects = 100;

/**
 * Inserts pending schedules into the scheduler's tables up to a number, each of another flag, due within a
 * year. The flags do not exist; schedulers look for schedules of deleted flags only when they start.
 */
async function fillPending(sql: Sql, wanted: number): Promise<void> {
  await sql.begin(async (tx) => {
    // Disables foreign key checks, which take long for a million rows.
    await tx`set local session_replication_role = replica`;
    await tx`
      with pending as materialized (
        select uuidv7() as id, uuidv7() as schedule_id, uuidv7() as flag_id,
          md5('project ' || number % ${projects})::uuid as project_id,
          md5('environment ' || number % ${projects})::uuid as environment_id,
          date_trunc('milliseconds',
            present_time() + interval '1 day' + random() * interval '364 days') as due_at
        from generate_series(
          (select count(*) from scheduled_changes where state = 'armed') + 1, ${wanted}::bigint
        ) as number
      ), schedule as (
        insert into schedules (id, organization_id, project_id, environment_id, flag_id, enable_at,
          disable_at, status, latest, created_at, created_by)
        select schedule_id, project_id, project_id, environment_id, flag_id, due_at, null, 'pending',
          true, present_time() - interval '1 hour', project_id
        from pending
      )
      insert into scheduled_changes (id, schedule_id, flag_id, environment_id, action, due_at, state)
      select id, schedule_id, flag_id, environment_id, 'enable', due_at, 'armed'
      from pending`;
  });
  await sql`vacuum analyze schedules, scheduled_changes`;
}
