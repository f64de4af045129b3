import { nowMs } from "../time.ts";

/**
 * Counts events in a child process until all expected ones have arrived. After the timeout, the others count as lost.
 */
export function createArrivals(what: string, clock = nowMs, timeoutMs = 20_000) {
  let expected = 0;
  let moments: number[] = [];
  let complete = Promise.withResolvers<void>();
  return {
    /** Discards earlier events. */
    expect(count: number): void {
      expected = count;
      moments = [];
      complete = Promise.withResolvers();
    },
    arrived(): void {
      moments.push(clock());
      if (moments.length === expected) complete.resolve();
    },
    /** Returns the time of each event. */
    async all(): Promise<number[]> {
      const late = setTimeout(() => {
        const missing = expected - moments.length;
        complete.reject(new Error(`${missing} of ${expected} ${what} are missing`));
      }, timeoutMs);
      await complete.promise;
      clearTimeout(late);
      return moments;
    },
  };
}

/** Runs a task `count` times, some of them concurrently. The first number is 0. */
export async function repeatAtOnce(
  { count, atOnce }: { count: number; atOnce: number },
  task: (number: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  async function runInTurn(): Promise<void> {
    while (next < count) await task(next++);
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, runInTurn));
}
