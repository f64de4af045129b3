import type { Cores } from "./processes/cores.ts";
import type { Figure } from "./reporting/figure.ts";

/**
 * A benchmark measures one thing, beside a baseline in the same run. What it starts it gives to
 * `afterwards`, which ends it when the benchmark is over, the last one first.
 */
export type Benchmark = {
  name: string;
  /** Another name, which selects all benchmarks of a group. */
  group?: string;
  /** What it measures, in one line. */
  summary: string;
  /**
   * Whether what is measured gets a core for itself, and everything else another. Not where several
   * servers are measured together, which then share all cores.
   */
  pinned: boolean;
  /** Whether it compares with other libraries or servers, which are installed on first use. */
  withPeers?: boolean;
  /**
   * Maximum of a ratio, as a factor of the saved one; a larger ratio fails the run. Undefined: ratios
   * are not compared with saved ones.
   */
  ratioTolerance?: number;
  run(bench: Bench): Promise<Outcome>;
  /** Says in which functions the time goes, where that is worth knowing. */
  profile?(bench: Bench): Promise<string>;
};

export type Bench = {
  /** Tiny and short: to see that a benchmark works, not to measure. */
  quick: boolean;
  /** The core of what is measured and the core of what asks; undefined where nothing can be pinned. */
  cores: Cores | undefined;
  afterwards(release: () => Promise<unknown>): void;
  /** A line about what is going on. */
  say(text: string): void;
};

export type Outcome = {
  figures: readonly Figure[];
  /** What a reader of the figures must know. */
  notes: readonly string[];
  /** What is shown as it was printed, such as how PostgreSQL carries out a statement. */
  listings?: readonly { title: string; text: string }[];
  /** Versions of the servers and libraries of others that took part, by name. */
  servers: Readonly<Record<string, string>>;
};
