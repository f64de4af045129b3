import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { type Load, startLoad } from "../http/load.ts";
import type { Child } from "../processes/child-process.ts";
import type { Figure } from "../reporting/figure.ts";
import { number } from "../reporting/table.ts";
import { alternate } from "../rounds.ts";
import { profileFlags } from "./flags-profile.ts";
import { connections, flags, type Poll, startPolledEdge } from "./polled-edge.ts";
import { startBaseline } from "./start-baseline.ts";

export const flagsBenchmark: Benchmark = {
  name: "flags",
  pinned: true,
  summary: `GET /api/v1/sdk/flags with ${flags} flags, 200 and 304, beside a bare node:http server`,
  run,
  profile: profileFlags,
};

const goal = 0.8;
/** Beyond this share of its time the generator, not the server, may be what limits. */
const generatorLimit = 0.95;

type Target = { url: string; child: Child };

async function run(bench: Bench): Promise<Outcome> {
  const { edge, polls, natsVersion } = await startPolledEdge(bench);
  const load = await startLoad(bench);
  const figures: Figure[] = [];
  const notes: string[] = [];
  for (const poll of polls) {
    bench.say(`${poll.name}: edge and bare node:http in turn`);
    const samples = await measure(bench, { load, edge, poll });
    figures.push(...figuresOf(poll, samples));
    notes.push(...notesOf(poll, samples));
  }
  return { figures, notes, servers: { NATS: natsVersion } };
}

/** The edge and the bare server in turn; the bare one in two forms, of which the faster counts. */
async function measure(bench: Bench, options: { load: Load; edge: Target; poll: Poll }) {
  const { load, edge, poll } = options;
  const bareBytes = await startBaseline(bench, edge.url, poll.plan, { bodyAs: "bytes" });
  const bareText = await startBaseline(bench, edge.url, poll.plan, { bodyAs: "text" });
  const round = (target: Target, measureMs: number) => () =>
    sample(load, { target, poll, measureMs });
  for (const target of [edge, bareBytes, bareText]) await round(target, bench.quick ? 50 : 1_500)();
  const measureMs = bench.quick ? 100 : 2_000;
  const samples = await alternate(bench.quick ? 1 : 5, {
    edge: round(edge, measureMs),
    bareBytes: round(bareBytes, measureMs),
    bareText: round(bareText, measureMs),
  });
  await Promise.all([bareBytes.child.stop(), bareText.child.stop()]);
  const { bareBytes: bytes, bareText: text } = samples;
  return { ...samples, bare: bytes.perSecond > text.perSecond ? bytes : text };
}

type Samples = Awaited<ReturnType<typeof measure>>;

async function sample(load: Load, order: { target: Target; poll: Poll; measureMs: number }) {
  const { target, poll, measureMs } = order;
  const result = await load.run({
    url: target.url,
    connections,
    measureMs,
    requests: [poll.plan],
    expectedStatus: poll.status,
    watch: [{ pid: target.child.pid }],
  });
  const [cpuMs = Number.NaN] = result.cpuMs;
  const serverBusy = cpuMs / result.elapsedMs;
  return {
    perSecond: (result.answers / result.elapsedMs) * 1e3,
    cpuMicroseconds: (cpuMs * 1e3) / result.answers,
    serverBusy,
    generatorBusy: result.generatorBusy,
    othersBusy: Math.max(0, result.machineBusy - serverBusy - result.generatorBusy),
    medianLatencyMs: result.medianLatencyMs,
  };
}

function figuresOf({ name }: Poll, { edge, bare }: Samples): Figure[] {
  return [
    {
      what: `${name}: requests a second`,
      unit: "/s",
      measured: edge.perSecond,
      baseline: bare.perSecond,
      goal: { of: "ratio", atLeast: goal },
    },
    {
      what: `${name}: CPU a request`,
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
  ];
}

function notesOf({ name }: Poll, { edge, bare, bareBytes, bareText }: Samples): string[] {
  const percent = (share: number) => `${Math.round(share * 100)} %`;
  const limited = Math.max(edge.generatorBusy, bare.generatorBusy) > generatorLimit;
  return [
    `${name}: the bare server gave ${number(bareText.perSecond)} /s with its body as a string, ` +
      `${number(bareBytes.perSecond)} /s with it as bytes; the faster one is the baseline.`,
    `${name}: of its core the edge used ${percent(edge.serverBusy)}, the bare server ` +
      `${percent(bare.serverBusy)}; the load generator of its own ${percent(edge.generatorBusy)} ` +
      `and ${percent(bare.generatorBusy)}. Processes that have nothing to do with it used ` +
      `${percent(Math.max(edge.othersBusy, bare.othersBusy))} of a core.` +
      (limited ? " So it was a limit itself: compare the CPU a request." : ""),
  ];
}
