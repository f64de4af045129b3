import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import type { OpenStreams } from "../streams/readers.ts";

export type ClientsQuestion =
  | { kind: "open"; sdk: string; url: string; key: string; count: number }
  | { kind: "arm" }
  | { kind: "arrivals" };

/** Starts a process with several clients of the server SDK. */
export async function startClients(
  bench: Bench,
  options: Omit<Extract<ClientsQuestion, { kind: "open" }>, "kind">,
): Promise<OpenStreams> {
  const child = await startChild(bench, {
    program: join(import.meta.dirname, "clients-process.ts"),
    core: bench.cores?.load,
  });
  const ask = (question: ClientsQuestion) => child.ask(question);
  await ask({ kind: "open", ...options });
  return {
    arm: async () => void (await ask({ kind: "arm" })),
    arrivals: async () => ((await ask({ kind: "arrivals" })) as { moments: number[] }).moments,
    stop: child.stop,
  };
}
