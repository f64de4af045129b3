import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Bench } from "../benchmark.ts";
import { unleashFeature } from "../peers/unleash-feature.ts";
import { cacheDir, peersDir } from "../project-root.ts";
import { type FlagKind, targetedFlags } from "../targeting/targeted-flags.ts";
import { userOf } from "../targeting/users.ts";
import type { MeasuredLibrary, Way } from "./measured-library.ts";

export const rustEngine = "Unleash's engine in Rust (yggdrasil 0.21.4)";

/** `one-created`: the context is created for the evaluation, which copies the user's attributes into it. */
export type RustWay = Way | "one-created";

export type MeasuredEngine = Pick<MeasuredLibrary, "values" | "stop"> & {
  speed(way: RustWay, durationMs: number): Promise<{ nanoseconds: number }>;
};

/** Builds the engine, which takes a minute the first time. Returns its program; undefined without Cargo. */
export function buildRustEngine(bench: Bench): string | undefined {
  if (spawnSync("cargo", ["--version"]).status !== 0) return undefined;
  bench.say("building Unleash's engine in Rust");
  const target = join(cacheDir, "yggdrasil");
  const built = spawnSync("cargo", ["build", "--release", "--locked", "--target-dir", target], {
    cwd: join(peersDir, "yggdrasil"),
    // Standard output is reserved for the report.
    stdio: ["ignore", process.stderr, process.stderr],
  });
  if (built.status !== 0) throw new Error("Unleash's engine in Rust could not be built");
  return join(target, "release/halyard-bench-yggdrasil");
}

/** Starts the engine with flags and users. Requests and responses are lines of JSON. */
export async function startRustEngine(
  bench: Bench,
  program: string,
  load: { flagKinds: readonly FlagKind[]; flags: number; users: number },
): Promise<MeasuredEngine> {
  const core = bench.cores?.server;
  const [command, args] =
    core === undefined ? [program, []] : ["taskset", ["--cpu-list", core, program]];
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const stop = async () => {
    child.kill();
    await exited;
  };
  bench.afterwards(stop);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

  async function ask(question: object): Promise<unknown> {
    child.stdin.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await lines.next();
    if (done === true) throw new Error("Unleash's engine in Rust exited unexpectedly");
    return JSON.parse(value);
  }

  const features = targetedFlags(load.flags, load.flagKinds).map(unleashFeature);
  const users = Array.from({ length: load.users }, (_, number) => userOf(number));
  await ask({ kind: "load", features: { version: 2, features }, users });
  return {
    values: async () => ((await ask({ kind: "values" })) as { values: string[] }).values,
    speed: async (way, durationMs) =>
      (await ask({ kind: "speed", way, durationMs })) as { nanoseconds: number },
    stop,
  };
}
