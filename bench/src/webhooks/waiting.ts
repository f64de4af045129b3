import type { Bench } from "../benchmark.ts";
import { quantile } from "../statistics.ts";
import { assertIndexed } from "./assert-indexed.ts";
import { fillWaiting, fillWebhooks } from "./fill-waiting.ts";
import { openProductStatements, type Plan, type ProductStatements } from "./product-statements.ts";
import type { WebhookSystem } from "./webhook-system.ts";

/** Costs with many waiting deliveries, compared with few. */
export type Waiting = { few: Costs; many: Costs; manyCount: number; plans: readonly Plan[] };

export type Costs = { claimMs: number; claimed: number; largestMs: number; ofLargest: number };

export const few = 1_000;
const many = 1_000_000;
/** With fewer rows, PostgreSQL rightly reads whole tables. */
const quickMany = 20_000;

/** Stops the dispatcher, because otherwise it would send the deliveries. */
export async function measureWaiting(bench: Bench, system: WebhookSystem): Promise<Waiting> {
  await system.dispatcher.child.stop();
  const statements = openProductStatements(bench, system.postgres.adminUrl);
  const manyCount = bench.quick ? quickMany : many;
  await fillWebhooks(system.admin);
  const costs: Costs[] = [];
  for (const waiting of [few, manyCount]) {
    bench.say(`${waiting.toLocaleString("en-US")} deliveries waiting`);
    await fillWaiting(system.admin, waiting);
    costs.push(await measureCosts(statements, bench.quick ? 3 : 30));
  }
  const plans = await statements.explain();
  for (const plan of plans) assertIndexed(plan);
  const [withFew, withMany] = costs as [Costs, Costs];
  return { few: withFew, many: withMany, manyCount, plans };
}

async function measureCosts(statements: ProductStatements, times: number): Promise<Costs> {
  const all: number[] = [];
  const largest: number[] = [];
  let claimed = 0;
  let ofLargest = 0;
  for (let count = 0; count < times; count += 1) {
    const one = await statements.timeClaim();
    const other = await statements.timeClaimOfLargest();
    all.push(one.tookMs);
    largest.push(other.tookMs);
    claimed = one.claimed;
    ofLargest = other.claimed;
  }
  return { claimMs: quantile(all, 0.5), claimed, largestMs: quantile(largest, 0.5), ofLargest };
}
