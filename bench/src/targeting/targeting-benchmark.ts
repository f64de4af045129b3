import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { besideBare, type Polling } from "../http/beside-bare.ts";
import { startLoad } from "../http/load.ts";
import { profilePolling } from "../profile/profile-polling.ts";
import { profilingInto } from "../profile/profiling.ts";
import type { Figure, Goal } from "../reporting/figure.ts";
import { assertTargeted } from "./assert-targeted.ts";
import { startTargetedEdge } from "./targeted-edge.ts";
import { targetedFlags } from "./targeted-flags.ts";
import {
  contextHeader,
  ofrepBulk,
  plansOf,
  postedUser,
  userIdQuery,
  type Way,
} from "./ways-of-asking.ts";

export const targetingBenchmark: Benchmark = {
  name: "targeting",
  pinned: true,
  summary: "flags for a new user in every request, beside a bare node:http server",
  run,
  profile,
};

type Case = { flags: number; ways: readonly { way: Way; goal?: Goal }[] };

const cases: readonly Case[] = [
  {
    flags: 100,
    ways: [
      { way: contextHeader, goal: { of: "ratio", atLeast: 0.6 } },
      { way: userIdQuery },
      { way: postedUser },
      { way: ofrepBulk },
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
    const { edge, clientKey: key, ...others } = await startTargetedEdge(bench, targeted);
    natsVersion = others.natsVersion;
    for (const { way, goal } of ways) {
      const polling = { ...pollingOf(flags, way, key), ...(goal === undefined ? {} : { goal }) };
      bench.say(`${polling.name}: edge and bare node:http in turn`);
      await assertTargeted(edge.url, { way, key, flags: targeted });
      const measured = await besideBare(bench, { load, edge, polling });
      figures.push(...measured.figures);
      notes.push(...measured.notes);
    }
    await edge.child.stop();
  }
  return { figures, notes, servers: { NATS: natsVersion } };
}

/** Where the time of an answer goes, beside where the bare server's goes. */
async function profile(bench: Bench): Promise<string> {
  const profiles: string[] = [];
  for (const flags of cases.map((each) => each.flags)) {
    const profiling = profilingInto(bench);
    const { nodeOptions } = profiling;
    const targeted = targetedFlags(flags);
    const { edge, clientKey: key } = await startTargetedEdge(bench, targeted, nodeOptions);
    await assertTargeted(edge.url, { way: contextHeader, key, flags: targeted });
    const pollings = [pollingOf(flags, contextHeader, key)];
    profiles.push(await profilePolling(bench, { edge, pollings, profiling }));
  }
  return profiles.join("\n\n");
}

function pollingOf(flags: number, way: Way, key: string): Polling {
  return {
    name: `${flags.toLocaleString("en-US")} flags, ${way.name}`,
    status: 200,
    plans: plansOf(way, key),
  };
}
