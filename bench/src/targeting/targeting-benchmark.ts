import type { Bench, Benchmark } from "../benchmark.ts";
import { type BarePolling, besideBare, memoryGoal } from "../http/beside-bare.ts";
import { startLoad } from "../http/load.ts";
import { ratioAtLeast } from "../reporting.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { assertTargeted } from "./assert-targeted.ts";
import {
  type AnyFlag,
  contentOf,
  type TargetedFlag,
  targetedFlags,
  withColors,
} from "./targeted-flags.ts";
import {
  contextHeader,
  ofrepBulk,
  ofrepSingle,
  plansOf,
  postedUser,
  typedValues,
  userIdQuery,
  type Way,
} from "./ways-of-asking.ts";

export const targetingBenchmark: Benchmark = {
  name: "targeting",
  pinned: true,
  summary: "all flags for a new user in every request, vs. a bare node:http server",
  method:
    "Every request has a new user with five attributes, so that no response can be cached. A third of the flags each are constant, rules with two conditions and 50 % rollouts. Typed flags have a split in place of the rollout. 64 connections, one edge process on one core. The baseline is a `node:http` server that always returns the response of the first user; for a single OFREP flag it also parses the request body. Before measuring, the benchmark compares the values or variations of 60 users with `libs/evaluation`.",
  run,
};

type MeasuredWay = { way: Way } & Pick<BarePolling, "goal" | "memoryGoal" | "bareReadsBody">;
const oneFlag = (targetedFlags(2)[1] as TargetedFlag).key;
type Case = { name: string; flags: readonly AnyFlag[]; ways: readonly MeasuredWay[] };
const cases: readonly Case[] = [
  {
    name: "100 flags",
    flags: targetedFlags(100),
    ways: [
      { way: contextHeader, goal: ratioAtLeast(0.6), memoryGoal },
      { way: userIdQuery },
      { way: postedUser },
      { way: ofrepBulk },
      // Reading and parsing the request body is most of the work.
      { way: ofrepSingle(oneFlag), goal: ratioAtLeast(0.7), bareReadsBody: true },
    ],
  },
  {
    name: "100 flags, a third typed",
    flags: withColors(targetedFlags(100)),
    ways: [{ way: typedValues, goal: ratioAtLeast(0.55) }, { way: ofrepBulk }],
  },
  {
    name: "1,000 flags",
    flags: targetedFlags(1_000),
    ways: [{ way: contextHeader, goal: ratioAtLeast(0.37) }],
  },
];

async function run(bench: Bench): Promise<void> {
  const load = await startLoad(bench);
  for (const { name, flags, ways } of cases) {
    const { edge, key } = await startSnapshotEdge(bench, contentOf(flags));
    const bytesPerCpuMs = new Map<string, number>();
    for (const { way, ...options } of ways) {
      if (way.answers !== "one flag") await assertTargeted(edge.url, { way, key, flags });
      const polling = { name: `${name}, ${way.name}`, status: 200, plans: plansOf(way, key) };
      const bytes = await besideBare(bench, { load, edge, polling: { ...polling, ...options } });
      bytesPerCpuMs.set(way.name, bytes);
    }
    const [bulk, header] = [ofrepBulk, contextHeader].map((way) => bytesPerCpuMs.get(way.name));
    // Compares response bytes, because OFREP's responses are longer than those of GET.
    if (bulk !== undefined && header !== undefined)
      bench.figure(
        `${name}, OFREP vs. X-User-Context: response bytes per millisecond of CPU`,
        "B",
        bulk,
        { baseline: header, goal: ratioAtLeast(0.85) },
      );
    await edge.stop();
  }
}
