import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import type { RequestPlan } from "../http/load.ts";
import { type Child, startChild } from "../processes/child-process.ts";

/** A polling client in its own process, which sends the same request at fixed intervals. */
export type SteadyPoll = {
  begin(order: PollOrder): Promise<void>;
  /** Stops the client and returns all polls. */
  end(): Promise<Poll[]>;
  stop(): Promise<void>;
};

export type PollOrder = { url: string; plan: RequestPlan; intervalMs: number };

/** Latency is measured from the time at which the poll was due, so that queueing counts. */
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
