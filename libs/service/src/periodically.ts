/**
 * Does something again and again, never twice at once. A failure that is expected is told and the work
 * is tried again at its time; any other ends the process, as a fault of the program should.
 */
export function periodically(
  everyMs: number,
  work: () => Promise<void>,
  expected: { isExpected: (error: unknown) => boolean; onFailure: (error: unknown) => void },
): { stop(): Promise<void> } {
  let working: Promise<void> | undefined;

  const timer = setInterval(() => {
    working ??= work()
      .catch((error: unknown) => {
        if (!expected.isExpected(error)) throw error;
        expected.onFailure(error);
      })
      .finally(() => {
        working = undefined;
      });
  }, everyMs);
  return {
    async stop() {
      clearInterval(timer);
      await working;
    },
  };
}
