import type { Bench, Benchmark } from "../benchmark.ts";
import { besideBare, memoryGoal } from "../http/beside-bare.ts";
import { startLoad } from "../http/load.ts";
import { unchanged } from "../http/raw-connection.ts";
import { ratioAtLeast } from "../reporting.ts";
import { startSnapshotEdge } from "../system/snapshot-edge.ts";
import { allFlags } from "../targeting/ways-of-asking.ts";

export const flagsBenchmark: Benchmark = {
  name: "flags",
  pinned: true,
  summary: "all flags for one API key, 200 and 304 responses, vs. a bare node:http server",
  method:
    "64 keep-alive connections send `GET /api/v1/sdk/flags` to one edge process on one core. The environment has 100 flags. The baseline is a `node:http` server that returns the same bytes and headers without reading the request. It sends its body as a string and as bytes; the faster one counts. Services start as in the images: without types, with the same memory settings.\n\n" +
    "Of about 19 µs per request, the system call that writes the response takes half and `node:http` most of the rest, on both sides. The edge takes 3 µs more. A bare server inside the edge's process takes 0.8 µs more than in its own process, because the process is larger. The framework's routing takes 0.4 µs; the API key, limits, counts and the request ID take 0.4 µs together. The rest is reading the other headers and listing those of the response.",
  run,
};

const goal = ratioAtLeast(0.85);

async function run(bench: Bench): Promise<void> {
  const { edge, key } = await startSnapshotEdge(bench, { flagsPerEnvironment: 100 });
  const load = await startLoad(bench);
  const whole = { name: "200", status: 200, plans: [allFlags(key)], goal, memoryGoal };
  await besideBare(bench, { load, edge, polling: whole });
  const plans = [await unchanged(edge.url, allFlags(key))];
  await besideBare(bench, { load, edge, polling: { name: "304", status: 304, plans, goal } });
}
