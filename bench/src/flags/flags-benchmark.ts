import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { besideBare } from "../http/beside-bare.ts";
import { startLoad } from "../http/load.ts";
import type { Figure } from "../reporting/figure.ts";
import { profileFlags } from "./flags-profile.ts";
import { flags, startPolledEdge } from "./polled-edge.ts";

export const flagsBenchmark: Benchmark = {
  name: "flags",
  pinned: true,
  summary: `GET /api/v1/sdk/flags with ${flags} flags, 200 and 304, beside a bare node:http server`,
  run,
  profile: profileFlags,
};

async function run(bench: Bench): Promise<Outcome> {
  const { edge, polls, natsVersion } = await startPolledEdge(bench);
  const load = await startLoad(bench);
  const figures: Figure[] = [];
  const notes: string[] = [];
  for (const polling of polls) {
    bench.say(`${polling.name}: edge and bare node:http in turn`);
    const measured = await besideBare(bench, { load, edge, polling });
    figures.push(...measured.figures);
    notes.push(...measured.notes);
  }
  return { figures, notes, servers: { NATS: natsVersion } };
}
