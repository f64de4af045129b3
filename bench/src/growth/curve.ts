import type { Bench, Benchmark } from "../benchmark.ts";
import { count, ratioBelow } from "../reporting.ts";
import { alternate } from "../statistics.ts";

/**
 * The cost of one operation at several sizes of an installation. All sizes are measured in turn, in one
 * run, and each one is compared with the smallest.
 */
export type Curve<Name extends string = string> = {
  name: string;
  summary: string;
  method: string;
  /** The unit of the sizes, such as "flags", and the sizes in ascending order. */
  sizes: { of: string; full: readonly number[]; quick: readonly number[]; rounds: number };
  /** Name and unit of each cost, and a goal for the ratio of the largest size. */
  costs: Readonly<Record<Name, readonly [what: string, unit: string, ratioBelow?: number]>>;
  note?: string;
  /** Prepares an installation of a size. Returns a function that measures each cost. */
  prepare(bench: Bench, size: number): Promise<() => Promise<Record<Name, number>>>;
};

/** Tolerates the noise of a busy machine. A cost that becomes linear in the size exceeds it. */
const ratioTolerance = 1.5;

export function growthBenchmark<Name extends string>(curve: Curve<Name>): Benchmark {
  const { name, summary, method } = curve;
  const run = (bench: Bench) => measureSizes(bench, curve);
  return {
    ...{ name: `growth-${name}`, group: "growth", summary, method },
    ...{ pinned: false, ratioTolerance, run },
  };
}

async function measureSizes<Name extends string>(bench: Bench, curve: Curve<Name>): Promise<void> {
  const { costs, note, prepare } = curve;
  const { of, full, quick, rounds } = curve.sizes;
  const sizes = bench.quick ? quick : full;
  const sides: Record<string, () => Promise<Record<string, number>>> = {};
  for (const size of sizes) {
    bench.say(`preparing ${count(size)} ${of}`);
    sides[size] = await prepare(bench, size);
  }
  const medians = await alternate(bench, rounds, sides);
  const [smallest = 0, ...larger] = sizes;
  for (const cost of Object.keys(costs) as Name[]) {
    const [what, unit, bound] = costs[cost];
    const costAt = (size: number) => medians[size]?.[cost] ?? Number.NaN;
    for (const size of larger)
      bench.figure(`${what}: ${count(size)} ${of} vs. ${count(smallest)}`, unit, costAt(size), {
        baseline: costAt(smallest),
        goal: bound !== undefined && size === sizes.at(-1) ? ratioBelow(bound) : undefined,
      });
  }
  if (note !== undefined) bench.note`${note}`;
}
