import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";

/** A load generator in its own process, with one request in flight on each connection. */
export type Load = { run(order: LoadOrder): Promise<LoadResult> };

export type LoadOrder = {
  url: string;
  connections: number;
  /** Duration of the measurement, after the warm-up. */
  measureMs: number;
  /** Requests, sent in turn, beginning after the last one of the previous run. See `numberMark`. */
  requests: readonly RequestPlan[];
  expectedStatus: number;
  /** The generator does not sleep while it waits. Use this only if it has a core to itself. */
  awake?: boolean;
  /** Processes whose CPU time is measured. */
  watch: readonly Watched[];
};

/** Order for the load generator's process. */
export type LoadRun = LoadOrder & {
  /** Time for opening the connections and warming up the server. */
  leadInMs: number;
};

const usualLeadInMs = 300;
/** Time for opening the connections only. */
const quickLeadInMs = 50;

/**
 * A placeholder in a plan. Each request has another number in its place, so that each one is from a new user.
 */
export const numberMark = "########";

/** Returns the plan with a number for its placeholder. */
export function numbered(plan: RequestPlan, number: number): RequestPlan {
  const digits = String(number).padStart(numberMark.length, "0");
  return JSON.parse(JSON.stringify(plan).replaceAll(numberMark, digits)) as RequestPlan;
}

export type RequestPlan = {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
};

export type LoadResult = {
  answers: number;
  elapsedMs: number;
  medianLatencyMs: number;
  p99LatencyMs: number;
  /** CPU share of the generator without idle turns. Near 1, it limits the result. */
  generatorBusy: number;
  /** CPU share of the generator including idle turns. */
  generatorUsed: number;
  /** Average number of busy cores of the machine. */
  machineBusy: number;
  /** CPU time of each watched process during the measurement. */
  cpuMs: readonly number[];
  /** Scheduling delay of the main thread of each watched process: it was ready to run, and no core was free. */
  coreWaitMs: readonly number[];
};

export async function startLoad(bench: Bench): Promise<Load> {
  const child: Child = await startChild(bench, {
    program: join(import.meta.dirname, "load-process.ts"),
    core: bench.cores?.load,
  });
  const leadInMs = bench.quick ? quickLeadInMs : usualLeadInMs;
  return {
    async run(order) {
      const run: LoadRun = { ...order, leadInMs };
      return (await child.ask(run)) as LoadResult;
    },
  };
}

/** A process; with `tree`, including its descendants. */
export type Watched = { pid: number; tree?: boolean };
