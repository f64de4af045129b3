import { setTimeout as delay } from "node:timers/promises";

const lookEveryMs = 10;
const usualPatienceMs = 60_000;

/** Waits until the question is answered with yes. It may fail in the meantime. */
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
  throw new Error(`Not within ${patienceMs / 1_000} s: ${what}`, { cause: lastError });
}
