import type { Bench } from "../benchmark.ts";
import { connections, type Polling, type Target } from "../http/beside-bare.ts";
import { numbered, type RequestPlan, startLoad } from "../http/load.ts";
import { startBaseline } from "../http/start-baseline.ts";
import { compareParts, compareProfiles } from "./compare-profiles.ts";
import type { profilingInto } from "./profiling.ts";

/** Compares the CPU profile of an edge with that of the bare server. Stops the edge. */
export async function profilePolling(
  bench: Bench,
  options: {
    edge: Target;
    pollings: readonly Polling[];
    profiling: ReturnType<typeof profilingInto>;
  },
): Promise<string> {
  const { edge, pollings, profiling } = options;
  const { nodeOptions } = profiling;
  const load = await startLoad(bench);
  const measured = [];
  for (const { name, status, plans, bareReadsBody: readsBody = false } of pollings) {
    const first = numbered(plans[0] as RequestPlan, 0);
    const options = { bodyAs: "text", readsBody, nodeOptions } as const;
    const bare = await startBaseline(bench, edge.url, first, options);
    const run = (url: string, measureMs: number) =>
      load.run({
        url,
        connections,
        measureMs,
        requests: plans,
        expectedStatus: status,
        watch: [],
      });
    for (const { url } of [edge, bare]) await run(url, bench.quick ? 50 : 1_000);
    const measureMs = bench.quick ? 200 : 4_000;
    const [edgeRun, bareRun] = [await run(edge.url, measureMs), await run(bare.url, measureMs)];
    await bare.child.stop();
    const baseline = { profile: profiling.read(bare.child.pid), run: bareRun };
    measured.push({ name, edgeRun, baseline });
  }
  await edge.child.stop();
  const profile = profiling.read(edge.child.pid);
  return measured
    .flatMap(({ name, edgeRun, baseline }) => [
      `${name}: self time per request in µs, edge and bare node:http`,
      compareParts({ profile, run: edgeRun }, baseline),
      "By function, the largest differences first:",
      compareProfiles({ profile, run: edgeRun }, baseline),
    ])
    .join("\n\n");
}
