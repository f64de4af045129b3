import type { Bench, Benchmark } from "../benchmark.ts";
import { type Polling, pollInTurn, startLoad } from "../http/load.ts";
import { unchanged } from "../http/raw-connection.ts";
import { ratioBelow } from "../reporting.ts";
import { startEdge } from "../system/services.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { allFlags } from "../targeting/ways-of-asking.ts";

export const tracingBenchmark: Benchmark = {
  name: "tracing",
  pinned: true,
  summary: "cost of a request for traces that are off, vs. an edge without the code for traces",
  method:
    "An edge without an endpoint for traces is compared with one in which constant functions replace `@halyard/tracing`. Both take turns on the same core. `200` and `304` are the cheapest responses, so that an added cost weighs most.",
  run,
};

const rounds = 15;

async function run(bench: Bench): Promise<void> {
  const { nats, edge, key } = await startSnapshotEdge(bench, { flagsPerEnvironment: 100 });
  const hook = new URL("replace-tracing.mjs", import.meta.url).href;
  const without = await startEdge(bench, { nats, nodeOptions: `--import=${hook}` });
  const load = await startLoad(bench);
  const whole = allFlags(key);
  const polls: readonly Polling[] = [
    { name: "200", status: 200, plans: [whole] },
    { name: "304", status: 304, plans: [await unchanged(edge.url, whole)] },
  ];
  for (const polling of polls) {
    bench.say(`${polling.name}: with and without the code for traces, in turn`);
    const targets = { ours: edge, bare: without };
    const { ours, bare } = await pollInTurn(bench, load, { rounds, polling, targets });
    const both = [ours, bare] as const;
    bench.compare(`${polling.name}: requests per second`, "/s", both, "perSecond");
    bench.compare(
      `${polling.name}: CPU per request`,
      "µs",
      both,
      "cpuMicroseconds",
      ratioBelow(1.02),
    );
  }
}
