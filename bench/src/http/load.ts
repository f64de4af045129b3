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
  /** Sent in turn, beginning where the run before has ended. */
  requests: readonly RequestPlan[];
  expectedStatus: number;
  /** Whose CPU time is read as measuring begins and as it ends. */
  watch: readonly Watched[];
};

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
  /** How many cores were busy, with whatever, on average. */
  machineBusy: number;
  /** CPU time in the measured time, of each process that is watched. */
  cpuMs: readonly number[];
};

export async function startLoad(bench: Bench): Promise<Load> {
  const child: Child = await startChild(bench, {
    program: join(import.meta.dirname, "load-process.ts"),
    core: bench.cores?.load,
  });
  return { run: async (order) => (await child.ask(order)) as LoadResult };
}

/** A process, and with `tree` those below it. */
export type Watched = { pid: number; tree?: boolean };
