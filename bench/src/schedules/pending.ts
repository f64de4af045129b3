import type { Bench } from "../benchmark.ts";
import { quantile } from "../statistics.ts";
import { fillPending } from "./fill-pending.ts";
import { setSchedules } from "./requests.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";

/** Costs with many pending schedules, compared with few. */
export type Pending = { few: Costs; many: Costs; manyCount: number };

export type Costs = { setMedianMs: number; setP99Ms: number };

export const few = 1_000;
const many = 1_000_000;
const quickMany = 50_000;
const dayMs = 24 * 60 * 60 * 1_000;

export async function measurePending(bench: Bench, system: SchedulingSystem): Promise<Pending> {
  const manyCount = bench.quick ? quickMany : many;
  const costs: Costs[] = [];
  for (const pending of [few, manyCount]) {
    bench.say(`${pending.toLocaleString("en-US")} schedules pending`);
    await fillPending(system.admin, pending);
    costs.push(await measureCosts(system, bench.quick ? 20 : 300));
  }
  const [withFew, withMany] = costs as [Costs, Costs];
  return { few: withFew, many: withMany, manyCount };
}

async function measureCosts(system: SchedulingSystem, count: number): Promise<Costs> {
  const tomorrow = new Date(Date.now() + dayMs);
  const options = { count, connections: 1, action: "enable", at: () => tomorrow } as const;
  const setsMs = await setSchedules(system, options);
  return { setMedianMs: quantile(setsMs, 0.5), setP99Ms: quantile(setsMs, 0.99) };
}
