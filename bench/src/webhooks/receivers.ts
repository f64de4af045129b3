import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import type { PostsAnswer, PostsQuestion } from "./bare-posts-process.ts";
import type { Arrivals, ReceiverQuestion } from "./receiver-process.ts";

/** Targets that respond immediately, in their own process. */
export type Receiver = {
  urls: readonly string[];
  pid: number;
  /** Starts counting requests; the returned promise waits for all of them. */
  expect(count: number): Promise<{ all(): Promise<Arrivals> }>;
};

/** Targets that never respond. */
export type HangingTargets = {
  urls: readonly string[];
  /** Closes all waiting requests. */
  drop(): Promise<void>;
};

/** Sends requests without a dispatcher. */
export type BarePosts = { pid: number; post(question: PostsQuestion): Promise<PostsAnswer> };

export async function startReceiver(bench: Bench, targets: number): Promise<Receiver> {
  const child = await start(bench, "receiver-process.ts", targets);
  const ask = (question: ReceiverQuestion) => child.ask(question);
  return {
    ...(child.greeting as { urls: string[] }),
    pid: child.pid,
    async expect(count) {
      await ask({ expect: count });
      return { all: async () => (await ask({ wait: true })) as Arrivals };
    },
  };
}

export async function startHangingTargets(bench: Bench, targets: number): Promise<HangingTargets> {
  const child = await start(bench, "hanging-process.ts", targets);
  return {
    ...(child.greeting as { urls: string[] }),
    drop: async () => void (await child.ask({})),
  };
}

export async function startBarePosts(bench: Bench): Promise<BarePosts> {
  const child = await start(bench, "bare-posts-process.ts");
  return {
    pid: child.pid,
    post: async (question) => (await child.ask(question)) as PostsAnswer,
  };
}

function start(bench: Bench, program: string, targets?: number) {
  return startChild(bench, {
    program: join(import.meta.dirname, program),
    core: undefined,
    environment: targets === undefined ? {} : { TARGETS: String(targets) },
  });
}
