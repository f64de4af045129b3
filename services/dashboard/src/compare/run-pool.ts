import { isRateLimited } from "../api/problem.ts";

/** Requests that are sent at the same time. */
const concurrency = 6;
/** Longest wait that the rate limit may ask for. */
const maxWaitMs = 10_000;
const maxWaits = 5;

/** Runs a task for each item, a few at a time. It stops at the first error, and when the signal is aborted. */
export async function runPool<Item>(
  items: readonly Item[],
  task: (item: Item) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      signal.throwIfAborted();
      await task(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
}

/** Repeats a request after the time that a rate limit names. */
export async function patiently<T>(request: () => Promise<T>): Promise<T> {
  for (let waits = 0; ; waits++) {
    try {
      return await request();
    } catch (error) {
      if (!isRateLimited(error) || waits === maxWaits) throw error;
      const { promise, resolve } = Promise.withResolvers<void>();
      setTimeout(resolve, Math.min(maxWaitMs, error.retryAfter * 1_000));
      await promise;
    }
  }
}
