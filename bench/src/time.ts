import { setTimeout as delay } from "node:timers/promises";

/** Returns the system's monotonic time in milliseconds. All processes of a machine share this clock. */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** Waits until a condition returns true. Errors count as false until the timeout. */
export async function until(
  what: string,
  question: () => Promise<boolean>,
  { timeoutMs = 60_000, pauseMs = 10 } = {},
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  while (performance.now() < deadline) {
    try {
      if (await question()) return;
    } catch (error) {
      lastError = error;
    }
    await delay(pauseMs);
  }
  throw new Error(`Timed out after ${timeoutMs / 1_000} s: ${what}`, { cause: lastError });
}

/** Repeats a step while some work is in progress. Returns the result of the work. */
export async function during<T>(work: Promise<T>, step: () => Promise<void>): Promise<T> {
  let working = true;
  const result = work.finally(() => {
    working = false;
  });
  while (working) await step();
  return result;
}
