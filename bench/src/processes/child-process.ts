import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { cacheDir } from "../project-root.ts";

/**
 * A process that a benchmark starts: a service, a baseline or a load generator. It is connected by a
 * channel, over which it says something at its start and then answers one question at a time. When
 * the benchmark ends, however it does, the channel closes, and the process goes.
 */
export type Child = {
  pid: number;
  /** What it said first. */
  greeting: unknown;
  ask(question: object): Promise<unknown>;
  stop(): Promise<void>;
};

export type ChildOptions = {
  program: string;
  /** The one core that it may use; all of them when undefined. */
  core: string | undefined;
  environment?: Record<string, string>;
  nodeOptions?: readonly string[];
};

export async function startChild(bench: Bench, options: ChildOptions): Promise<Child> {
  const node = [
    process.execPath,
    "--disable-warning=ExperimentalWarning",
    ...(options.nodeOptions ?? []),
    options.program,
  ];
  const [command = "", ...args] =
    options.core === undefined ? node : ["taskset", "--cpu-list", options.core, ...node];
  const child = spawn(command, args, {
    env: {
      PATH: process.env.PATH,
      // Half of a start is loading modules, of which a quick run has nothing to learn.
      ...(bench.quick ? { NODE_COMPILE_CACHE: join(cacheDir, "node") } : {}),
      ...options.environment,
    },
    // What services log is of no interest; what they die of is.
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const exited = once(child, "exit");
  let stopping = false;
  const died = exited.then(([code, signal]) => {
    if (stopping) return undefined;
    throw new Error(`${options.program} ended by itself (${signal ?? code})`);
  });
  // Whoever waits for an answer hears of it; when nobody does, the next question will.
  died.catch(() => undefined);

  async function stop(): Promise<void> {
    stopping = true;
    child.kill("SIGTERM");
    await exited;
  }

  bench.afterwards(stop);
  const greeting = await answer(child, died);
  return {
    pid: child.pid as number,
    greeting,
    ask: (question) => {
      const answered = answer(child, died);
      child.send(question);
      return answered;
    },
    stop,
  };
}

async function answer(child: ChildProcess, died: Promise<undefined>): Promise<unknown> {
  const waiting = new AbortController();
  try {
    const said = once(child, "message", { signal: waiting.signal });
    const message = await Promise.race([said, died]);
    if (message === undefined) throw new Error("the process was stopped while it was asked");
    return message[0];
  } finally {
    waiting.abort();
  }
}
