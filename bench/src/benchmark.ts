import { type Cores, keepToCore } from "./processes/cores.ts";
import type { Figure, Goal } from "./reporting.ts";
import { quantile } from "./statistics.ts";

/** A benchmark compares one measurement with a baseline in the same run. */
export type Benchmark = {
  name: string;
  /** Name that selects all benchmarks of a group. */
  group?: string;
  /** One line for `--help` and the list of results. */
  summary: string;
  /** Markdown for the page with the results: what is measured and what the baseline is. */
  method: string;
  /**
   * Runs the measured process on one core and everything else on another. False if several servers are
   * measured together; they share all cores.
   */
  pinned: boolean;
  /** Compares with other libraries or servers, which are installed on first use. */
  withPeers?: boolean;
  /**
   * Maximum of a ratio, as a factor of the saved one; a larger ratio fails the run. Undefined: ratios
   * are not compared with saved ones.
   */
  ratioTolerance?: number;
  run(bench: Bench): Promise<void>;
};

/** A run of a benchmark: its settings, and the report that it fills. */
export type Bench = ReturnType<typeof createBench>;

export type Outcome = {
  figures: readonly Figure[];
  notes: readonly string[];
  /** Versions of third-party servers and libraries, by name. */
  servers: Readonly<Record<string, string>>;
};

type Settings = {
  /** Small and short, to test that a benchmark works. Its figures mean nothing. */
  quick: boolean;
  /** The core of the measured process and the core of the load. Undefined: nothing is pinned. */
  cores: Cores | undefined;
};
type Compared = { baseline?: number | undefined; goal?: Goal | undefined };
type Pair<Field extends string> = readonly [Record<Field, number>, Record<Field, number>];
const shares = { median: 0.5, p99: 0.99, maximum: 1 };
type Quantile = keyof typeof shares;

function createBench(settings: Settings) {
  const releases: (() => unknown)[] = [];
  const figures: Figure[] = [];
  const notes: string[] = [];
  const versions = new Map<string, string>();
  function figure(what: string, unit: string, measured: number, compared: Compared = {}): void {
    const { baseline, goal } = compared;
    // Without /proc, there is no CPU time.
    if (Number.isNaN(measured)) return;
    const others = { ...(baseline !== undefined && { baseline }), ...(goal && { goal }) };
    figures.push({ what, unit, measured, ...others });
  }
  return {
    ...settings,
    /** Registers what stops a started process after the benchmark, in reverse order. */
    afterwards: (release: () => unknown) => void releases.push(release),
    /** Prints a line about the progress. */
    say: (text: string) => console.error(`… ${text}`),
    /** Adds a row to the table of figures. */
    figure,
    /** Adds a row with the same field of two samples: the measured one and the baseline. */
    compare: <Field extends string>(
      what: string,
      unit: string,
      [measured, baseline]: Pair<Field>,
      field: Field,
      goal?: Goal,
    ) => figure(what, unit, measured[field], { baseline: baseline[field], goal }),
    /** Adds a row in milliseconds for each quantile, named `${prefix}${quantile}`; median and p99 by default. */
    latencies(
      prefix: string,
      timesMs: readonly number[],
      options: {
        of?: readonly Quantile[];
        baselineMs?: readonly number[];
        goals?: Partial<Record<Quantile, Goal>>;
      } = {},
    ): void {
      const { of = ["median", "p99"], baselineMs, goals } = options;
      for (const name of of) {
        const baseline = baselineMs && quantile(baselineMs, shares[name]);
        const compared = { baseline, goal: goals?.[name] };
        figure(`${prefix}${name}`, "ms", quantile(timesMs, shares[name]), compared);
      }
    },
    /** Adds a fact that a reader of the figures needs. */
    note: (texts: TemplateStringsArray, ...values: (string | number)[]) =>
      void notes.push(String.raw({ raw: texts }, ...values)),
    /** Adds the version of a third-party server or library. */
    version: (name: string, version: string) => void versions.set(name, version),
    outcome(): Outcome {
      return { figures, notes, servers: Object.fromEntries([...versions].sort().reverse()) };
    },
    async release() {
      for (const release of releases.reverse()) await release();
    },
  };
}

/**
 * Runs a benchmark and stops everything that it started, even after an error. If this process is killed, its
 * children exit because their channels close, and the guards stop the servers.
 */
export async function runBenchmark({ run }: Benchmark, settings: Settings): Promise<Outcome> {
  keepToCore(settings.cores?.load);
  const bench = createBench(settings);
  try {
    await run(bench);
    return bench.outcome();
  } finally {
    await bench.release();
  }
}
