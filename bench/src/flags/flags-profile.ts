import type { Bench } from "../benchmark.ts";
import { startLoad } from "../http/load.ts";
import { compareProfiles } from "../profile/compare-profiles.ts";
import { profilingInto } from "../profile/profiling.ts";
import { connections, startPolledEdge } from "./polled-edge.ts";
import { startBaseline } from "./start-baseline.ts";

/** Where the time of an answer goes, beside where the bare server's goes. */
export async function profileFlags(bench: Bench): Promise<string> {
  const profiling = profilingInto(bench);
  const { nodeOptions } = profiling;
  const { edge, polls } = await startPolledEdge(bench, nodeOptions);
  const load = await startLoad(bench);
  const measured = [];
  for (const { name, status, plan } of polls) {
    const bare = await startBaseline(bench, edge.url, plan, { bodyAs: "text", nodeOptions });
    const run = (url: string, measureMs: number) =>
      load.run({
        url,
        connections,
        measureMs,
        requests: [plan],
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
      `${name}: self time in µs a request, edge and bare node:http`,
      compareProfiles({ profile, run: edgeRun }, baseline),
    ])
    .join("\n\n");
}
