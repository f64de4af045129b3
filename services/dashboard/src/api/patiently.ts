import { isRateLimited } from "./problem.ts";

/** Longest wait that the rate limit may ask for. */
const maxWaitMs = 10_000;
const maxWaits = 5;

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
