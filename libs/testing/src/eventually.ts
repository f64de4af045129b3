import { setTimeout as delay } from "node:timers/promises";

const lookEveryMs = 10;

/** Many times what a quiet machine needs: several test files share it, with the servers of each. */
const patienceMs = 20_000;

/**
 * Waits until a question is answered with something other than undefined or false, and gives that
 * answer. The question may throw in the meantime; its last error explains a time-out.
 */
export async function eventually<T>(
  question: () => T | Promise<T>,
  options: { withinMs?: number; because?: string } = {},
): Promise<Exclude<T, undefined | false>> {
  const { withinMs = patienceMs } = options;
  const deadline = performance.now() + withinMs;
  let lastError: unknown;
  for (;;) {
    try {
      const answer = await question();
      if (answer !== undefined && answer !== false) return answer as Exclude<T, undefined | false>;
      lastError = undefined;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() > deadline)
      throw new Error(`Not within ${withinMs} ms: ${options.because ?? question.toString()}`, {
        cause: lastError,
      });
    await delay(lookEveryMs);
  }
}
