import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import type { FlagKind } from "../targeting/targeted-flags.ts";

export const peerNames = [
  "unleash-client",
  "@openfeature/flagd-core",
  "@growthbook/growthbook",
] as const;

export const libraryNames = ["halyard", ...peerNames] as const;

export type LibraryName = (typeof libraryNames)[number];

/** `all` evaluates all flags for each user; `one` uses another user for each evaluation. */
export type Way = "all" | "one";

export type LibraryQuestion =
  | {
      kind: "load";
      library: LibraryName;
      flagKinds: readonly FlagKind[];
      flags: number;
      users: number;
    }
  | { kind: "values" }
  | { kind: "speed"; way: Way; durationMs: number }
  | { kind: "allocation"; way: Way };

/** A library process with loaded flags and users. */
export type MeasuredLibrary = {
  /** One row for each user, with one digit for each flag's value. */
  values(): Promise<string[]>;
  speed(way: Way, durationMs: number): Promise<{ nanoseconds: number }>;
  /** Bytes per evaluation. */
  allocation(way: Way): Promise<number>;
  stop(): Promise<void>;
};

export async function startLibrary(
  bench: Bench,
  load: Omit<Extract<LibraryQuestion, { kind: "load" }>, "kind">,
  nodeOptions: readonly string[] = [],
): Promise<MeasuredLibrary> {
  const child: Child = await startChild(bench, {
    program: join(import.meta.dirname, "library-process.ts"),
    core: bench.cores?.server,
    // Some libraries validate and log more in development.
    environment: { NODE_ENV: "production" },
    nodeOptions,
  });
  const ask = (question: LibraryQuestion) => child.ask(question);
  await ask({ kind: "load", ...load });
  return {
    values: async () => ((await ask({ kind: "values" })) as { values: string[] }).values,
    speed: async (way, durationMs) =>
      (await ask({ kind: "speed", way, durationMs })) as { nanoseconds: number },
    allocation: async (way) =>
      ((await ask({ kind: "allocation", way })) as { bytes: number }).bytes,
    stop: child.stop,
  };
}
