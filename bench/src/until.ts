import { setTimeout as delay } from "node:timers/promises";

const pollIntervalMs = 10;
const defaultTimeoutMs = 60_000;

/** Waits until a condition returns true. Errors count as false until the timeout. */
export async function until(
  what: string,
  question: () => Promise<boolean>,
  timeoutMs = defaultTimeoutMs,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  while (performance.now() < deadline) {
    try {
      if (await question()) return;
    } catch (error) {
      lastError = error;
    }
    await delay(pollIntervalMs);
  }
  throw new Error(`Timed out after ${timeoutMs / 1_000} s: ${what}`, { cause: lastError });
}
