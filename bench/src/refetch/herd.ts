import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";

/** Many simulated OpenFeature web providers in one process. */
export type Herd = {
  /** Each client evaluates all flags with its own context, and opens the offered stream. */
  open(url: string, key: string, clients: number): Promise<void>;
  /** Starts waiting for the next refetch of each client. */
  arm(): Promise<void>;
  /**
   * Returns the time of each response in the clock of `nowMs`, and the number of responses other than 200 and
   * 304.
   */
  refetches(): Promise<Refetches>;
  stop(): Promise<void>;
};

export type Refetches = { moments: number[]; unchanged: number; errors: number };

export type HerdQuestion =
  | { kind: "open"; url: string; key: string; clients: number }
  | { kind: "arm" }
  | { kind: "refetches" };

export async function startHerd(bench: Bench): Promise<Herd> {
  const child: Child = await startChild(bench, {
    program: join(import.meta.dirname, "herd-process.ts"),
    core: bench.cores?.load,
  });
  const ask = (question: HerdQuestion) => child.ask(question);
  return {
    open: async (url, key, clients) => void (await ask({ kind: "open", url, key, clients })),
    arm: async () => void (await ask({ kind: "arm" })),
    refetches: async () => (await ask({ kind: "refetches" })) as Refetches,
    stop: child.stop,
  };
}
