import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import type { FlagKind } from "../targeting/targeted-flags.ts";

/** `baseline` is the loop without the call of the client. */
export type Loop = "client" | "baseline";

export type ApplicationQuestion =
  | { kind: "connect"; sdk: string; url: string; key: string; flags: number }
  | {
      kind: "pace";
      loop: Loop;
      flagKinds: readonly FlagKind[];
      perSecond: number;
      durationMs: number;
    }
  | { kind: "repeat"; loop: Loop; flagKinds: readonly FlagKind[]; evaluations: number };

type Questions<Kind> = Omit<Extract<ApplicationQuestion, { kind: Kind }>, "kind">;

type Paced = { percent: number; perSecond: number };
type Repeated = { nanoseconds: number };

/** A process with a connected client. */
export type Application = {
  /** Evaluates at a rate. Returns the CPU time as a percentage of a core. */
  pace(options: Questions<"pace">): Promise<Paced>;
  /** Evaluates without pauses. Returns the CPU time of one evaluation. */
  repeat(options: Questions<"repeat">): Promise<Repeated>;
  stop(): Promise<void>;
};

export async function startApplication(
  bench: Bench,
  options: Questions<"connect">,
): Promise<Application> {
  const child = await startChild(bench, {
    program: join(import.meta.dirname, "application-process.ts"),
    core: bench.cores?.server,
    environment: { NODE_ENV: "production" },
  });
  const ask = (question: ApplicationQuestion) => child.ask(question);
  await ask({ kind: "connect", ...options });
  return {
    pace: async (given) => (await ask({ kind: "pace", ...given })) as Paced,
    repeat: async (given) => (await ask({ kind: "repeat", ...given })) as Repeated,
    stop: child.stop,
  };
}
