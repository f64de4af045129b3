import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { cacheDir } from "../project-root.ts";

/**
 * A process that a benchmark starts: a service, a baseline or a load generator. It sends a greeting over a
 * channel, then responds to one request at a time. The process exits when the channel closes, even if the
 * benchmark is killed.
 */
export type Child = {
  pid: number;
  /** The greeting. */
  greeting: unknown;
  ask(question: object): Promise<unknown>;
  stop(): Promise<void>;
};

export type ChildOptions = {
  program: string;
  /** The core of the process. Undefined: it is not pinned. */
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
      // A quick run caches compiled modules, because their loading is half of a start.
      ...(bench.quick ? { NODE_COMPILE_CACHE: join(cacheDir, "node") } : {}),
      ...options.environment,
    },
    // Only standard error is shown.
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const exited = once(child, "exit");
  let stopping = false;
  const died = exited.then(([code, signal]) => {
    if (stopping) return undefined;
    throw new Error(`${options.program} exited unexpectedly (${signal ?? code})`);
  });
  // A pending or the next request reports the error.
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
    if (message === undefined) throw new Error("the process was stopped during a request");
    return message[0];
  } finally {
    waiting.abort();
  }
}
