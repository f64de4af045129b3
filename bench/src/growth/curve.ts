import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import type { Figure } from "../reporting/figure.ts";
import { alternate } from "../rounds.ts";
import type { Nats, Postgres } from "../system/backends.ts";

/**
 * The cost of one operation at several sizes of an installation. All sizes are measured in turn, in one
 * run, and each one is compared with the smallest.
 */
export type Curve = {
  name: string;
  summary: string;
  method: string;
  /** The unit of the sizes, such as "flags". */
  of: string;
  /** In ascending order. */
  sizes: readonly number[];
  quickSizes: readonly number[];
  rounds: number;
  costs: readonly Cost[];
  notes?: readonly string[];
  /** Returns a function that prepares an installation of a size. */
  open(bench: Bench): Promise<(size: number) => Promise<Side>>;
};

export type Cost = {
  what: string;
  unit: string;
  /** Goal for the largest size. */
  ratioBelow?: number;
};

/** An installation of one size. */
export type Side = {
  nats?: Nats;
  postgres?: Postgres;
  /** Returns each cost by its `what`. */
  measure(): Promise<Record<string, number>>;
};

/** Tolerates the noise of a busy machine. A cost that becomes linear in the size exceeds it. */
const ratioTolerance = 1.5;

export function growthBenchmark(curve: Curve): Benchmark {
  return {
    name: `growth-${curve.name}`,
    group: "growth",
    summary: curve.summary,
    method: curve.method,
    pinned: false,
    ratioTolerance,
    run: (bench) => run(bench, curve),
  };
}

async function run(bench: Bench, curve: Curve): Promise<Outcome> {
  const sizes = bench.quick ? curve.quickSizes : curve.sizes;
  const prepare = await curve.open(bench);
  const sides: [string, Side][] = [];
  for (const size of sizes) {
    bench.say(`preparing ${described(size, curve)}`);
    sides.push([String(size), await prepare(size)]);
  }
  bench.say("measuring all sizes in turn");
  const measures = Object.fromEntries(sides.map(([size, { measure }]) => [size, measure]));
  const medians = await alternate(bench.quick ? 1 : curve.rounds, measures);
  const [first] = sides.map(([, side]) => side);
  return {
    figures: curve.costs.flatMap((cost) => figuresOf(curve, { cost, sizes, medians })),
    notes: curve.notes ?? [],
    servers: {
      ...(first?.postgres && { PostgreSQL: first.postgres.version }),
      ...(first?.nats && { NATS: first.nats.version }),
    },
  };
}

function figuresOf(
  curve: Curve,
  {
    cost,
    sizes,
    medians,
  }: {
    cost: Cost;
    sizes: readonly number[];
    medians: Readonly<Record<string, Record<string, number>>>;
  },
): Figure[] {
  const { what, unit, ratioBelow } = cost;
  const costAt = (size: number) => medians[size]?.[what] as number;
  const [smallest = 0, ...larger] = sizes;
  return larger.map((size) => ({
    what: `${what}: ${described(size, curve)} vs. ${amount(smallest)}`,
    unit,
    measured: costAt(size),
    baseline: costAt(smallest),
    ...(ratioBelow === undefined || size !== sizes.at(-1)
      ? {}
      : { goal: { of: "ratio", below: ratioBelow } }),
  }));
}

const described = (size: number, { of }: Curve) => `${amount(size)} ${of}`;
const amount = (count: number) => count.toLocaleString("en-US");
