import type { Bench } from "../benchmark.ts";
import type { Child } from "../processes/child-process.ts";
import { residentBytes } from "../processes/process-usage.ts";
import type { Figure, Goal } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import { captureAnswer } from "./capture-answer.ts";
import { type Load, numbered, type RequestPlan } from "./load.ts";
import { startBaseline } from "./start-baseline.ts";

/** A server under load. */
export type Target = { url: string; child: Child };

export type Polling = {
  name: string;
  status: number;
  /** Requests, sent in turn. The bare server returns the response to the first one. */
  plans: readonly RequestPlan[];
  goal?: Goal;
  memoryGoal?: Goal;
  /** The bare server reads and parses request bodies. */
  bareReadsBody?: boolean;
};

export const connections = 64;
/** CPU share of the load generator above which it may limit the result. */
const generatorLimit = 0.95;
const rounds = 5;
const warmUpMs = 1_500;
const measuredMs = 2_000;

/**
 * Measures the edge and the bare server in turn. The bare server sends its body as bytes and as a string; the
 * faster one counts.
 */
export async function besideBare(
  bench: Bench,
  { load, edge, polling }: { load: Load; edge: Target; polling: Polling },
): Promise<{ figures: Figure[]; notes: string[]; bytesPerCpuMs: number }> {
  const first = numbered(polling.plans[0] as RequestPlan, 0);
  const readsBody = polling.bareReadsBody ?? false;
  const startBare = (bodyAs: "bytes" | "text") =>
    startBaseline(bench, edge.url, first, { bodyAs, readsBody });
  const bareBytes = await startBare("bytes");
  const bareText = await startBare("text");
  const round = (target: Target, measureMs: number) => () =>
    sample(load, { target, polling, measureMs });
  for (const target of [edge, bareBytes, bareText])
    await round(target, bench.quick ? 50 : warmUpMs)();
  const measureMs = bench.quick ? 100 : measuredMs;
  const samples = await alternate(bench.quick ? 1 : rounds, {
    edge: round(edge, measureMs),
    bareBytes: round(bareBytes, measureMs),
    bareText: round(bareText, measureMs),
  });
  await Promise.all([bareBytes.child.stop(), bareText.child.stop()]);
  const { bareBytes: bytes, bareText: text } = samples;
  const bare = bytes.perSecond > text.perSecond ? bytes : text;
  const { body } = await captureAnswer(edge.url, first);
  return {
    bytesPerCpuMs: (body.length * 1e3) / samples.edge.cpuMicroseconds,
    figures: figuresOf(polling, samples.edge, bare),
    notes: notesOf(polling, { ...samples, bare }),
  };
}

export type Sample = Awaited<ReturnType<typeof sample>>;

/** Runs the load generator against one server. */
export async function sample(
  load: Load,
  order: { target: Target; polling: Polling; measureMs: number },
) {
  const { target, polling, measureMs } = order;
  const result = await load.run({
    url: target.url,
    connections,
    measureMs,
    requests: polling.plans,
    expectedStatus: polling.status,
    awake: true,
    watch: [{ pid: target.child.pid }],
  });
  const [cpuMs = Number.NaN] = result.cpuMs;
  const serverBusy = cpuMs / result.elapsedMs;
  return {
    perSecond: (result.answers / result.elapsedMs) * 1e3,
    cpuMicroseconds: (cpuMs * 1e3) / result.answers,
    serverBusy,
    generatorBusy: result.generatorBusy,
    othersBusy: Math.max(0, result.machineBusy - serverBusy - result.generatorUsed),
    medianLatencyMs: result.medianLatencyMs,
    residentMb: residentBytes(target.child.pid) / 1e6,
  };
}

/** Goal for an edge with 100 flags. */
export const memoryGoal: Goal = { of: "measured", below: 140 };

function figuresOf({ name, goal, memoryGoal }: Polling, edge: Sample, bare: Sample): Figure[] {
  return [
    {
      what: `${name}: requests per second`,
      unit: "/s",
      measured: edge.perSecond,
      baseline: bare.perSecond,
      ...(goal === undefined ? {} : { goal }),
    },
    {
      what: `${name}: CPU per request`,
      unit: "µs",
      measured: edge.cpuMicroseconds,
      baseline: bare.cpuMicroseconds,
    },
    {
      what: `${name}: median latency at ${connections} connections`,
      unit: "ms",
      measured: edge.medianLatencyMs,
      baseline: bare.medianLatencyMs,
    },
    {
      what: `${name}: memory under load`,
      unit: "MB",
      measured: edge.residentMb,
      baseline: bare.residentMb,
      ...(memoryGoal === undefined ? {} : { goal: memoryGoal }),
    },
  ];
}

type Samples = Record<"edge" | "bare" | "bareBytes" | "bareText", Sample>;

function notesOf({ name }: Polling, { edge, bare, bareBytes, bareText }: Samples): string[] {
  const limited = Math.max(edge.generatorBusy, bare.generatorBusy) > generatorLimit;
  return [
    `${name}: bare server ${number(bareText.perSecond)} /s with a string body, ` +
      `${number(bareBytes.perSecond)} /s with bytes; the faster one is the baseline.`,
    `${name}: CPU of the edge ${percent(edge.serverBusy)}, of the bare server ` +
      `${percent(bare.serverBusy)}, of the load generator ${percent(edge.generatorBusy)} ` +
      `and ${percent(bare.generatorBusy)}, of unrelated processes ` +
      `${percent(Math.max(edge.othersBusy, bare.othersBusy))} of a core.` +
      (limited ? " The load generator was a limit: compare the CPU per request." : ""),
  ];
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
