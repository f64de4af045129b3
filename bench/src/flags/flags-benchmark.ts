import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { besideBare } from "../http/beside-bare.ts";
import { startLoad } from "../http/load.ts";
import type { Figure } from "../reporting/figure.ts";
import { startPolledEdge } from "./polled-edge.ts";

export const flagsBenchmark: Benchmark = {
  name: "flags",
  pinned: true,
  summary: "all flags for one API key, 200 and 304 responses, vs. a bare node:http server",
  method:
    "64 keep-alive connections send `GET /api/v1/sdk/flags` to one edge process on one core. The environment has 100 flags. " +
    "The baseline is a `node:http` server that returns the same bytes and headers without reading the request. " +
    "It sends its body as a string and as bytes; the faster one counts. " +
    "Services start as in the images: without types, with the same memory settings.\n\n" +
    "Of about 19 µs per request, the system call that writes the response takes half and `node:http` most of the rest, " +
    "on both sides. The edge takes 3 µs more. A bare server inside the edge's process takes 0.8 µs more " +
    "than in its own process, because the process is larger. The framework's routing takes 0.4 µs; the API key, " +
    "limits, counts and the request ID take 0.4 µs together. The rest is reading the other headers and listing those " +
    "of the response.",
  run,
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
