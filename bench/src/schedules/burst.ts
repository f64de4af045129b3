import { setTimeout as delay } from "node:timers/promises";
import { cpuMs, cpuMsOfTree } from "../processes/process-usage.ts";
import type { Service } from "../system/services.ts";
import { until } from "../until.ts";
import type { Effects } from "./effects.ts";
import { type Action, patchFlags, readLatenesses, setSchedules } from "./requests.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";

/** Many changes that are due at the same time, until all streams have them. */
export type Burst = {
  /** Milliseconds from the API. The maximum is the time until all changes were applied. */
  latenessesMs: readonly number[];
  /** From the due time until the scheduler recorded the last change. */
  recordedMs: number;
  /** From the due time until every stream had all changes. */
  streamedMs: number;
  /** Missing or duplicate history entries and events. */
  amiss: number;
  cpu: Cpu;
};

/** CPU time in seconds, summed over the processes of a kind. */
export type Cpu = Readonly<
  Record<"management" | "scheduler" | "PostgreSQL" | "NATS" | "edges", number>
>;

const dayMs = 24 * 60 * 60 * 1_000;
/** Schedulers look for due changes at least every second. */
const leadMs = 1_100;
/** Three times the goal of a burst. */
const timeoutMs = 180_000;

/**
 * Sets a schedule for each flag by HTTP, for tomorrow. One statement then moves all of them to the same time
 * in the near future, so that this time does not depend on the speed of setting them.
 */
export async function measureBurst(
  system: SchedulingSystem,
  options: { changes: number; action: Action; readEffects: () => Promise<Effects> },
): Promise<Burst> {
  const { changes, action, readEffects } = options;
  const tomorrow = new Date(Date.now() + dayMs);
  await setSchedules(system, { count: changes, action, at: () => tomorrow });
  for (const stream of system.streams) stream.expect(action === "enable");
  const before = await readEffects();

  const dueMs = Math.ceil((Date.now() + leadMs) / 1_000) * 1_000;
  await moveTo(system, new Date(dueMs));
  await delay(dueMs - Date.now());
  const cpuBefore = cpuOf(system);
  await allHaveCome(system, changes);
  await until("the scheduler has recorded all changes", () => isRecorded(system), timeoutMs);
  const cpu = difference(cpuOf(system), cpuBefore);

  const after = await readEffects();
  const latenessesMs = await readLatenesses(system, changes);
  return {
    latenessesMs,
    recordedMs: (await lastRecordedMs(system)) - dueMs,
    streamedMs:
      Math.max(...system.streams.flatMap(({ arrivedMs }) => [...arrivedMs.values()])) - dueMs,
    amiss:
      Math.abs(after.scheduledEntries - before.scheduledEntries - changes) +
      Math.abs(after.events - before.events - changes),
    cpu,
  };
}

/** Applies the same changes with requests, until the last response. */
export async function measurePatches(
  system: SchedulingSystem,
  { changes, action }: { changes: number; action: Action },
): Promise<{ tookMs: number; cpu: Cpu }> {
  const cpuBefore = cpuOf(system);
  const beganMs = performance.now();
  await patchFlags(system, { count: changes, action });
  return { tookMs: performance.now() - beganMs, cpu: difference(cpuOf(system), cpuBefore) };
}

async function allHaveCome({ streams }: SchedulingSystem, changes: number): Promise<void> {
  const haveAll = async () => streams.every(({ arrivedMs }) => arrivedMs.size === changes);
  try {
    await until("the streams have all changes", haveAll, timeoutMs);
  } catch (error) {
    const come = streams.map(({ arrivedMs }) => arrivedMs.size).join(" and ");
    throw new Error(`only ${come} of ${changes} changes arrived on the streams`, { cause: error });
  }
}

async function moveTo({ admin }: SchedulingSystem, due: Date): Promise<void> {
  await admin.begin(async (tx) => {
    await tx`
      update schedules
      set enable_at = case when enable_at is not null then ${due}::timestamptz end,
          disable_at = case when disable_at is not null then ${due}::timestamptz end
      where status = 'pending'`;
    await tx`update scheduled_changes set due_at = ${due} where state = 'armed'`;
  });
}

async function isRecorded({ admin }: SchedulingSystem): Promise<boolean> {
  const open = await admin`
    select from scheduled_changes where state in ('waiting', 'armed', 'sent') limit 1`;
  return open.count === 0;
}

async function lastRecordedMs({ admin }: SchedulingSystem): Promise<number> {
  const [row] = await admin<[{ at: Date }]>`select max(finished_at) as at from schedules`;
  return row.at.getTime();
}

function cpuOf(system: SchedulingSystem): Cpu {
  const sum = (services: readonly Service[]) =>
    services.reduce((total, { child }) => total + cpuMs(child.pid), 0) / 1e3;
  return {
    management: sum(system.managements),
    scheduler: sum(system.schedulers),
    PostgreSQL: cpuMsOfTree(system.postgres.pid) / 1e3,
    NATS: cpuMs(system.nats.pid) / 1e3,
    edges: sum(system.edges),
  };
}

function difference(after: Cpu, before: Cpu): Cpu {
  const names = Object.keys(after) as (keyof Cpu)[];
  return Object.fromEntries(names.map((name) => [name, after[name] - before[name]])) as Cpu;
}
