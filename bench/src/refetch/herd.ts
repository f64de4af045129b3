import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";

/** Many clients of the kind that OpenFeature's web provider is, in a process of their own. */
export type Herd = {
  /** Each evaluates all flags with a context of its own, and opens the stream that it was offered. */
  open(url: string, key: string, clients: number): Promise<void>;
  /** From here on the next refetch of each client is waited for. */
  arm(): Promise<void>;
  /** When each of them had its answer, by the clock of `nowMs`, and how many were no 200 or 304. */
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
