import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import type { RequestPlan } from "../http/load.ts";
import { type Child, startChild } from "../processes/child-process.ts";

/** An ordinary client of its own process, which asks the same thing again and again, come what may. */
export type SteadyPoll = {
  begin(order: PollOrder): Promise<void>;
  /** Ends it; answers every poll since the beginning. */
  end(): Promise<Poll[]>;
  stop(): Promise<void>;
};

export type PollOrder = { url: string; plan: RequestPlan; everyMs: number };

/** A poll counts from when it was due, so that one that is late for another's sake counts as slow. */
export type Poll = { dueMs: number; latencyMs: number; status: number };

export type PollQuestion = ({ kind: "begin" } & PollOrder) | { kind: "end" };

export async function startSteadyPoll(bench: Bench): Promise<SteadyPoll> {
  const child: Child = await startChild(bench, {
    program: join(import.meta.dirname, "steady-poll-process.ts"),
    core: bench.cores?.load,
  });
  const ask = (question: PollQuestion) => child.ask(question);
  return {
    begin: async (order) => void (await ask({ kind: "begin", ...order })),
    end: async () => ((await ask({ kind: "end" })) as { polls: Poll[] }).polls,
    stop: child.stop,
  };
}
