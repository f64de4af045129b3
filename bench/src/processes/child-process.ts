import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join, resolve } from "node:path";
import type { Bench } from "../benchmark.ts";
import { cacheDir } from "../project-root.ts";
import type { Remote } from "./answer-parent.ts";
import type { Cores } from "./cores.ts";

/**
 * A process that a benchmark starts: a service, a baseline or a load generator. It sends a greeting over a
 * channel, and then serves one call of a function at a time. The process exits when the channel closes, even
 * if the benchmark is killed.
 */
export type Child<Api = unknown, Greeting = { url: string }> = {
  pid: number;
  greeting: Greeting;
  call: Remote<Api>;
  stop(): Promise<void>;
};

type ChildOptions = {
  /** Path, relative to `bench/src`. */
  program: string;
  core: keyof Cores;
  environment?: Record<string, string>;
  nodeOptions?: readonly string[];
};

export async function startChild<Api = unknown, Greeting = { url: string }>(
  bench: Bench,
  { program, core, environment, nodeOptions = [] }: ChildOptions,
): Promise<Child<Api, Greeting>> {
  const path = resolve(import.meta.dirname, "..", program);
  const node = [process.execPath, "--disable-warning=ExperimentalWarning", ...nodeOptions, path];
  const pin = bench.cores === undefined ? [] : ["taskset", "--cpu-list", bench.cores[core]];
  const [command = "", ...args] = [...pin, ...node];
  const child = spawn(command, args, {
    env: {
      PATH: process.env.PATH,
      // A quick run caches compiled modules, because their loading is half of a start.
      ...(bench.quick ? { NODE_COMPILE_CACHE: join(cacheDir, "node") } : {}),
      ...environment,
    },
    // Only standard error is shown.
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const exited = once(child, "exit");
  let stopping = false;
  const died = exited.then(([code, signal]) => {
    if (stopping) return undefined;
    throw new Error(`${program} exited unexpectedly (${signal ?? code})`);
  });
  // A pending or the next call reports the error.
  died.catch(() => undefined);

  async function call(name: string, ...given: unknown[]): Promise<unknown> {
    const answered = receive(child, died);
    child.send({ name, given });
    return ((await answered) as { answer?: unknown }).answer;
  }

  async function stop(): Promise<void> {
    stopping = true;
    child.kill("SIGTERM");
    await exited;
  }

  bench.afterwards(stop);
  const functions = { get: (_: object, name: string) => call.bind(undefined, name) };
  const greeting = (await receive(child, died)) as Greeting;
  return {
    pid: child.pid as number,
    greeting,
    call: new Proxy({}, functions) as Remote<Api>,
    stop,
  };
}

async function receive(child: ChildProcess, died: Promise<undefined>): Promise<unknown> {
  const waiting = new AbortController();
  try {
    const said = once(child, "message", { signal: waiting.signal });
    const message = await Promise.race([said, died]);
    if (message === undefined) throw new Error("the process was stopped during a call");
    return message[0];
  } finally {
    waiting.abort();
  }
}
