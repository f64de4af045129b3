import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream } from "@halyard/contracts";
import { jetstreamManager } from "@nats-io/jetstream";
import type { Bench } from "../benchmark.ts";
import { cpuMs, cpuMsOfTree } from "../processes/process-usage.ts";
import { connectNats } from "../system/backends.ts";
import type { Service } from "../system/services.ts";
import { until } from "../time.ts";
import { type Action, patchFlags, readLatenesses, setSchedules } from "./requests.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";

/** CPU time in seconds, summed over the processes of a kind. */
export type Cpu = Readonly<Record<string, number>>;
export type Burst = Awaited<ReturnType<typeof measureBurst>>;
type Changes = { changes: number; action: Action };
const dayMs = 24 * 60 * 60 * 1_000;
/** Schedulers look for due changes at least every second. */
const leadMs = 1_100;
/** Three times the goal of a burst. */
const timeoutMs = 180_000;
export const tomorrow = () => new Date(Date.now() + dayMs);

/** Counts history entries and events of changes. Each change must leave one of both. */
export async function openEffects(bench: Bench, { nats, admin }: SchedulingSystem) {
  const manager = await jetstreamManager(await connectNats(bench, nats), { checkAPI: false });
  return async () => {
    // An edge may receive the snapshot entry before the event is in `FLAG_EVENTS`.
    await until("the relay has published everything", async () => {
      const unsent = await admin`select from management.outbox where sent_at is null limit 1`;
      return unsent.count === 0;
    });
    const [row] = await admin<[{ entries: number }]>`
      select count(*)::int as entries from management.history where change_type = 'scheduled'`;
    const { state } = await manager.streams.info(flagEventsStream.name);
    return { entries: row.entries, events: state.messages };
  };
}

/**
 * Measures many changes that are due at the same time, until all streams have them. Sets a schedule for each flag
 * by HTTP, for tomorrow. One statement then moves all of them to the same time in the near future, so that this
 * time does not depend on the speed of setting them.
 */
export async function measureBurst(
  system: SchedulingSystem,
  options: Changes & { readEffects: Awaited<ReturnType<typeof openEffects>> },
) {
  const { changes, action, readEffects } = options;
  const { admin, streams } = system;
  await setSchedules(system, { count: changes, action, at: tomorrow });
  for (const stream of streams) stream.expect(action === "enable");
  const before = await readEffects();

  const dueMs = Math.ceil((Date.now() + leadMs) / 1_000) * 1_000;
  await moveTo(system, new Date(dueMs));
  await delay(dueMs - Date.now());
  const usedCpu = watchCpu(system);
  const haveAll = async () => streams.every(({ arrivedMs }) => arrivedMs.size === changes);
  await until("the streams have all changes", haveAll, { timeoutMs });
  const isRecorded = async () => {
    const open = await admin`
      select from scheduled_changes where state in ('waiting', 'armed', 'sent') limit 1`;
    return open.count === 0;
  };
  await until("the scheduler has recorded all changes", isRecorded, { timeoutMs });
  const cpu = usedCpu();

  const after = await readEffects();
  const [row] = await admin<[{ at: Date }]>`select max(finished_at) as at from schedules`;
  const arrivals = streams.flatMap(({ arrivedMs }) => [...arrivedMs.values()]);
  return {
    /** Milliseconds from the API. The maximum is the time until all changes were applied. */
    latenessesMs: await readLatenesses(system, changes),
    /** From the due time until the scheduler recorded the last change. */
    recordedMs: row.at.getTime() - dueMs,
    /** From the due time until every stream had all changes. */
    streamedMs: Math.max(...arrivals) - dueMs,
    /** Missing or duplicate history entries and events. */
    amiss:
      Math.abs(after.entries - before.entries - changes) +
      Math.abs(after.events - before.events - changes),
    cpu,
  };
}

export async function measurePatches(system: SchedulingSystem, { changes, action }: Changes) {
  const usedCpu = watchCpu(system);
  const beganMs = performance.now();
  await patchFlags(system, { count: changes, action });
  return { tookMs: performance.now() - beganMs, cpu: usedCpu() };
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

/** Returns a function that returns the CPU time since then. */
function watchCpu({ managements, schedulers, postgres, nats, edges }: SchedulingSystem): () => Cpu {
  const sum = (services: readonly Service[]) =>
    services.reduce((total, { pid }) => total + cpuMs(pid), 0);
  const read = () => ({
    ...{ management: sum(managements), scheduler: sum(schedulers) },
    ...{ PostgreSQL: cpuMsOfTree(postgres.pid), NATS: cpuMs(nats.pid), edges: sum(edges) },
  });
  const before: Cpu = read();
  const since = ([name, usedMs]: [string, number]) =>
    [name, (usedMs - (before[name] ?? 0)) / 1e3] as const;
  return () => Object.fromEntries(Object.entries(read()).map(since));
}
