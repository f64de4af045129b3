import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import { residentBytes } from "../processes/process-usage.ts";
import { alternate } from "../statistics.ts";
import type { LoadGenerator } from "./load-process.ts";
import type { RequestPlan } from "./requests.ts";

/** A load generator in its own process, with one request in flight on each connection. */
export type Load = Child<LoadGenerator, object>;

export type LoadOrder = {
  url: string;
  connections: number;
  /** Time for opening the connections and warming up the server. */
  leadInMs: number;
  /** Duration of the measurement, after the warm-up. */
  measureMs: number;
  /** Requests, sent in turn, beginning after the last one of the previous run. See `numberMark`. */
  requests: readonly RequestPlan[];
  expectedStatus: number;
  /** The generator does not sleep while it waits. Use this only if it has a core to itself. */
  awake?: boolean;
  watch: readonly Watched[];
};

export type Watched = { pid: number; tree?: boolean };

export const startLoad = (bench: Bench): Promise<Load> =>
  startChild(bench, { program: "http/load-process.ts", core: "load" });

export const leadInMs = ({ quick }: Bench) => (quick ? 50 : 300);
export type Target = {
  url: string;
  pid: number;
  /** The process behind a proxy. */
  behind?: { pid: number };
  stop(): Promise<void>;
};

export type Polling = {
  name: string;
  status: number;
  /** Requests, sent in turn. The bare server returns the response to the first one. */
  plans: readonly RequestPlan[];
};

export type Sample = Awaited<ReturnType<typeof sample>>;
export const connections = 64;
const measuredMs = 2_000;

/** Warms up all servers, then runs the load generator against each in turn. A server may have its own plans. */
export async function pollInTurn<Side extends string>(
  bench: Bench,
  load: Load,
  options: {
    rounds: number;
    warmUpMs?: number;
    polling: Polling;
    targets: Record<Side, Target & { plans?: readonly RequestPlan[] }>;
  },
): Promise<Record<Side, Sample>> {
  const { rounds, warmUpMs = 1_500, polling, targets } = options;
  const names = Object.keys(targets) as Side[];
  const round = (side: Side, measureMs: number) => {
    const { url, pid, behind, plans = polling.plans } = targets[side];
    const times = { leadInMs: leadInMs(bench), measureMs };
    const watch = [{ pid }, ...(behind === undefined ? [] : [behind])];
    const order = { url, connections, requests: plans, expectedStatus: polling.status };
    return sample(load, { ...times, ...order, awake: true, watch });
  };
  for (const side of names) await round(side, bench.quick ? 50 : warmUpMs);
  const measureMs = bench.quick ? 100 : measuredMs;
  const measures = names.map((side) => [side, () => round(side, measureMs)]);
  return alternate(bench, rounds, Object.fromEntries(measures)) as Promise<Record<Side, Sample>>;
}

async function sample(load: Load, order: LoadOrder) {
  const result = await load.call.run(order);
  const { answers, elapsedMs, generatorBusy, medianLatencyMs } = result;
  const [cpuMs = Number.NaN] = result.cpuMs;
  const pathCpuMs = result.cpuMs.reduce((sum, each) => sum + each, 0);
  return {
    perSecond: (answers / elapsedMs) * 1e3,
    cpuMicroseconds: (cpuMs * 1e3) / answers,
    /** Of a proxy and the process behind it. */
    pathCpuMicroseconds: (pathCpuMs * 1e3) / answers,
    serverBusy: cpuMs / elapsedMs,
    ...{ generatorBusy, medianLatencyMs },
    residentMb: residentBytes(order.watch[0]?.pid ?? 0) / 1e6,
  };
}
