import type { Cores } from "./processes/cores.ts";
import type { Figure } from "./reporting/figure.ts";

/**
 * A benchmark compares one measurement with a baseline in the same run. It registers everything that it starts
 * with `afterwards`, which stops it after the benchmark, in reverse order.
 */
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
  run(bench: Bench): Promise<Outcome>;
};

export type Bench = {
  /** Small and short, to test that a benchmark works. Its figures mean nothing. */
  quick: boolean;
  /** The core of the measured process and the core of the load. Undefined: nothing is pinned. */
  cores: Cores | undefined;
  afterwards(release: () => Promise<unknown>): void;
  /** Prints a line about the progress. */
  say(text: string): void;
};

export type Outcome = {
  figures: readonly Figure[];
  /** Facts that a reader of the figures needs. */
  notes: readonly string[];
  /** Versions of third-party servers and libraries, by name. */
  servers: Readonly<Record<string, string>>;
};
