import type { Bench, Benchmark } from "../benchmark.ts";
import { type BarePolling, besideBare, memoryGoal } from "../http/beside-bare.ts";
import { startLoad } from "../http/load.ts";
import { count, ratioAtLeast } from "../reporting.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { assertTargeted } from "./assert-targeted.ts";
import { contentOf, type TargetedFlag, targetedFlags } from "./targeted-flags.ts";
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
    "Every request has a new user with five attributes, so that no response can be cached. A third of the flags each are constant, rules with two conditions and 50 % rollouts. 64 connections, one edge process on one core. The baseline is a `node:http` server that always returns the response of the first user; for a single OFREP flag it also parses the request body. Before measuring, the benchmark compares the values of 60 users with `libs/evaluation`.",
  run,
};

type MeasuredWay = { way: Way } & Pick<BarePolling, "goal" | "memoryGoal" | "bareReadsBody">;
const oneFlag = (targetedFlags(2)[1] as TargetedFlag).key;
const cases: readonly { flags: number; ways: readonly MeasuredWay[] }[] = [
  {
    flags: 100,
    ways: [
      { way: contextHeader, goal: ratioAtLeast(0.6), memoryGoal },
      { way: userIdQuery },
      { way: postedUser },
      { way: ofrepBulk },
      // Reading and parsing the request body is most of the work.
      { way: ofrepSingle(oneFlag), goal: ratioAtLeast(0.7), bareReadsBody: true },
    ],
  },
  { flags: 1_000, ways: [{ way: contextHeader, goal: ratioAtLeast(0.35) }] },
];

async function run(bench: Bench): Promise<void> {
  const load = await startLoad(bench);
  for (const { flags, ways } of cases) {
    const targeted = targetedFlags(flags);
    const { edge, key } = await startSnapshotEdge(bench, contentOf(targeted));
    const bytesPerCpuMs = new Map<string, number>();
    for (const { way, ...options } of ways) {
      if (way.answers !== "one flag") await assertTargeted(edge.url, { way, key, flags: targeted });
      const name = `${count(flags)} flags, ${way.name}`;
      const polling = { name, status: 200, plans: plansOf(way, key), ...options };
      bytesPerCpuMs.set(way.name, await besideBare(bench, { load, edge, polling }));
    }
    const [bulk, header] = [ofrepBulk, contextHeader].map(({ name }) => bytesPerCpuMs.get(name));
    // Compares response bytes, because OFREP's responses are longer than those of GET.
    if (bulk !== undefined)
      bench.figure(
        `${flags} flags, OFREP vs. X-User-Context: response bytes per millisecond of CPU`,
        "B",
        bulk,
        { baseline: header, goal: ratioAtLeast(0.85) },
      );
    await edge.stop();
  }
}
