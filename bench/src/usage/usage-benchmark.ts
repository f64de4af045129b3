import type { Bench, Benchmark, Outcome } from "../benchmark.ts";
import { startNats } from "../system/backends.ts";
import { measureCountedPolling } from "./counted-polling.ts";
import { measureMeteringIntake } from "./metering-intake.ts";
import { measureOpeningStreams } from "./opening-streams.ts";

export const usageBenchmark: Benchmark = {
  name: "usage",
  pinned: true,
  summary:
    "what metering and limits cost an edge, 10,000 streams opened on four, and 50 edges counted",
  run,
};

async function run(bench: Bench): Promise<Outcome> {
  const nats = await startNats(bench);
  const polling = await measureCountedPolling(bench, nats);
  const opening = await measureOpeningStreams(bench, nats);
  // Another server, in whose queue nothing waits of what the edges have counted.
  const intake = await measureMeteringIntake(bench, await startNats(bench));
  return {
    figures: [...polling.figures, ...opening.figures, ...intake.figures],
    notes: [...polling.notes, ...opening.notes, ...intake.notes],
    servers: { PostgreSQL: intake.version, NATS: nats.version },
  };
}
