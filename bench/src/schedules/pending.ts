import type { Bench } from "../benchmark.ts";
import { quantile } from "../statistics.ts";
import { assertIndexed } from "./assert-indexed.ts";
import { fillPending } from "./fill-pending.ts";
import { openProductStatements, type Plan, type ProductStatements } from "./product-statements.ts";
import { setSchedules } from "./requests.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";

/** Costs with many pending schedules, compared with few. */
export type Pending = { few: Costs; many: Costs; manyCount: number; plans: readonly Plan[] };

export type Costs = {
  claimMs: number;
  setMedianMs: number;
  setP99Ms: number;
  walkMs: number;
};

export const few = 1_000;
const many = 1_000_000;
/** With fewer rows, PostgreSQL rightly reads whole tables. */
const quickMany = 50_000;
const dayMs = 24 * 60 * 60 * 1_000;

export async function measurePending(bench: Bench, system: SchedulingSystem): Promise<Pending> {
  const statements = openProductStatements(bench, system.postgres.adminUrl);
  const manyCount = bench.quick ? quickMany : many;
  const counts = bench.quick ? { claims: 3, sets: 20 } : { claims: 20, sets: 300 };
  const costs: Costs[] = [];
  for (const pending of [few, manyCount]) {
    bench.say(`${pending.toLocaleString("en-US")} schedules pending`);
    await fillPending(system.admin, pending);
    costs.push(await measureCosts(system, statements, counts));
  }
  const plans = await statements.explain();
  for (const plan of plans) assertIndexed(plan);
  const [withFew, withMany] = costs as [Costs, Costs];
  return { few: withFew, many: withMany, manyCount, plans };
}

async function measureCosts(
  system: SchedulingSystem,
  statements: ProductStatements,
  counts: { claims: number; sets: number },
): Promise<Costs> {
  const claimsMs: number[] = [];
  for (let count = 0; count < counts.claims; count += 1)
    claimsMs.push(await statements.timeClaim());
  const tomorrow = new Date(Date.now() + dayMs);
  const setsMs = await setSchedules(system, {
    count: counts.sets,
    connections: 1,
    action: "enable",
    at: () => tomorrow,
  });
  return {
    claimMs: quantile(claimsMs, 0.5),
    setMedianMs: quantile(setsMs, 0.5),
    setP99Ms: quantile(setsMs, 0.99),
    walkMs: await statements.timeWalk(),
  };
}
