import { setTimeout as delay } from "node:timers/promises";

const lookEveryMs = 10;
const usualPatienceMs = 60_000;

/** Waits until a condition returns true. Errors count as false until the timeout. */
export async function until(
  what: string,
  question: () => Promise<boolean>,
  patienceMs = usualPatienceMs,
): Promise<void> {
  const deadline = performance.now() + patienceMs;
  let lastError: unknown;
  while (performance.now() < deadline) {
    try {
      if (await question()) return;
    } catch (error) {
      lastError = error;
    }
    await delay(lookEveryMs);
  }
  throw new Error(`Timed out after ${patienceMs / 1_000} s: ${what}`, { cause: lastError });
}
