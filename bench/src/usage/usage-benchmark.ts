import type { Bench, Benchmark } from "../benchmark.ts";
import { startNats } from "../system/backends.ts";
import { measureCountedPolling } from "./counted-polling.ts";
import { measureMeteringIntake } from "./metering-intake.ts";
import { measureOpeningStreams } from "./opening-streams.ts";

export const usageBenchmark: Benchmark = {
  name: "usage",
  pinned: true,
  summary:
    "cost of metering and plan limits for a request, opening streams within a limit, and counting",
  method:
    "**Requests.** An edge with metering and limits, compared with an edge without them, on the same core in turn. `200` and `304` are the cheapest responses, so that the added cost weighs most; `POST` evaluates flags for a new user each time.\n\n" +
    "**Opening streams.** 10,000 streams over four edges, for an organization whose plan allows exactly that many, compared with an organization without a limit. The benchmark fails if the edges hold another number of slots, or admit one more stream.\n\n" +
    "**Counting.** 50 simulated edges send 100 messages per second to usage-metering, each about 20 of 200 environments. Then 10,000 messages wait when it starts. The benchmark fails if the database does not contain exactly the requests of the messages.",
  run,
};

async function run(bench: Bench): Promise<void> {
  const nats = await startNats(bench);
  await measureCountedPolling(bench, nats);
  await measureOpeningStreams(bench, nats);
  // It starts a new server, because the queue of the other one contains messages of the edges.
  await measureMeteringIntake(bench);
}
