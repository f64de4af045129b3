import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";

/** A load generator of its own process: so many connections, one request in flight on each. */
export type Load = { run(order: LoadOrder): Promise<LoadResult> };

export type LoadOrder = {
  url: string;
  connections: number;
  /** How long is measured, after a moment to get going. */
  measureMs: number;
  /** Sent in turn, beginning where the run before has ended; see `numberMark`. */
  requests: readonly RequestPlan[];
  expectedStatus: number;
  /** The generator does not sleep between answers. Only where nobody else needs its core. */
  awake?: boolean;
  /** Whose CPU time is read as measuring begins and as it ends. */
  watch: readonly Watched[];
};

/** What the load generator's process is told. */
export type LoadRun = LoadOrder & {
  /** Connections open and the server's code warms up before anything counts. */
  leadInMs: number;
};

const usualLeadInMs = 300;
/** Enough for connections to open. */
const quickLeadInMs = 50;

/**
 * Where this stands in a plan, a request carries a number, and no two requests of a load generator the
 * same one. So each comes from a user who has never asked before.
 */
export const numberMark = "########";

/** The plan with one number, for a single request. */
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
  /** The two moments between which was measured, by the clock of `nowMs`. */
  fromMs: number;
  toMs: number;
  medianLatencyMs: number;
  p99LatencyMs: number;
  /** How much of the time the generator itself was busy; near 1 it was what limited the figures. */
  generatorBusy: number;
  /** How much of a core the generator used, with staying awake. */
  generatorUsed: number;
  /** How many cores were busy, with whatever, on average. */
  machineBusy: number;
  /** CPU time in the measured time, of each process that is watched. */
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

/** A process, and with `tree` those below it. */
export type Watched = { pid: number; tree?: boolean };
