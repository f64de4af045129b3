import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Bench } from "../benchmark.ts";

/** Starts a server that is not written in Node.js, on the core of the measured process. */
export function startProgram(
  bench: Bench,
  program: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): { pid: number; stop(): Promise<void> } {
  const pin = bench.cores === undefined ? [] : ["taskset", "--cpu-list", bench.cores.server];
  const [command = "", ...args] = [...pin, ...program];
  const env = { PATH: process.env.PATH, ...environment };
  const child = spawn(command, args, { env, stdio: "ignore" });
  const exited = once(child, "exit");
  const stop = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  bench.afterwards(stop);
  return { pid: child.pid as number, stop };
}
