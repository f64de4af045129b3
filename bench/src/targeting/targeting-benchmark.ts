import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { besideBare, memoryGoal, type Polling } from "../http/beside-bare.ts";
import { startLoad } from "../http/load.ts";
import type { Figure, Goal } from "../reporting/figure.ts";
import { assertTargeted } from "./assert-targeted.ts";
import { startTargetedEdge } from "./targeted-edge.ts";
import { type TargetedFlag, targetedFlags } from "./targeted-flags.ts";
import {
  contextHeader,
  ofrepBulk,
  ofrepSingle,
  plansOf,
  postedUser,
  userIdQuery,
  type Way,
} from "./ways-of-asking.ts";

export const targetingBenchmark: Benchmark = {
  name: "targeting",
  pinned: true,
  summary: "all flags for a new user in every request, vs. a bare node:http server",
  method:
    "Every request has a new user with five attributes, so that no response can be cached. A third of the flags each are constant, rules with two conditions and 50 % rollouts. " +
    "64 connections, one edge process on one core. The baseline is a `node:http` server that always returns the response of the first user; for a single OFREP flag it also parses the request body. " +
    "Before measuring, the benchmark compares the values of 60 users with `libs/evaluation`.",
  run,
};

type Case = {
  flags: number;
  ways: readonly {
    way: Way;
    goal?: Goal;
    memoryGoal?: Goal;
    /** The bare server reads and parses request bodies, which is most of the work. */
    bareReadsBody?: true;
  }[];
};

const cases: readonly Case[] = [
  {
    flags: 100,
    ways: [
      { way: contextHeader, goal: { of: "ratio", atLeast: 0.6 }, memoryGoal },
      { way: userIdQuery },
      { way: postedUser },
      { way: ofrepBulk },
      {
        way: ofrepSingle((targetedFlags(2)[1] as TargetedFlag).key),
        goal: { of: "ratio", atLeast: 0.7 },
        bareReadsBody: true,
      },
    ],
  },
  {
    flags: 1_000,
    ways: [{ way: contextHeader, goal: { of: "ratio", atLeast: 0.35 } }],
  },
];

async function run(bench: Bench): Promise<Outcome> {
  const load = await startLoad(bench);
  const figures: Figure[] = [];
  const notes: string[] = [];
  let natsVersion = "";
  for (const { flags, ways } of cases) {
    const targeted = targetedFlags(flags);
    const { edge, key, ...others } = await startTargetedEdge(bench, targeted);
    natsVersion = others.natsVersion;
    const bytesPerCpuMs = new Map<string, number>();
    for (const { way, ...options } of ways) {
      const polling: Polling = { ...pollingOf(flags, way, key), ...options };
      bench.say(`${polling.name}: edge and bare node:http in turn`);
      if (way.answers !== "one flag") await assertTargeted(edge.url, { way, key, flags: targeted });
      const measured = await besideBare(bench, { load, edge, polling });
      figures.push(...measured.figures);
      notes.push(...measured.notes);
      bytesPerCpuMs.set(way.name, measured.bytesPerCpuMs);
    }
    const bulk = bytesPerCpuMs.get(ofrepBulk.name);
    const header = bytesPerCpuMs.get(contextHeader.name);
    if (bulk !== undefined && header !== undefined) figures.push(bulkFigure(flags, bulk, header));
    await edge.child.stop();
  }
  return { figures, notes, servers: { NATS: natsVersion } };
}

/** Compares response bytes, because OFREP's responses are longer than those of GET. */
function bulkFigure(flags: number, measured: number, baseline: number): Figure {
  return {
    what: `${flags} flags, OFREP vs. X-User-Context: response bytes per millisecond of CPU`,
    unit: "B",
    measured,
    baseline,
    goal: { of: "ratio", atLeast: 0.85 },
  };
}

function pollingOf(flags: number, way: Way, key: string): Polling {
  return {
    name: `${flags.toLocaleString("en-US")} flags, ${way.name}`,
    status: 200,
    plans: plansOf(way, key),
  };
}
