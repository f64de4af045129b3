/**
 * Does something again and again, never twice at once. Work that is long asks between its parts whether it
 * may go on, so that a stop waits for no more than one of them. A failure that is expected is told and the
 * work is tried again at its time; any other ends the process, as a fault of the program should.
 */
export function periodically(
  everyMs: number,
  work: (mayGoOn: () => boolean) => Promise<void>,
  options: {
    isExpected: (error: unknown) => boolean;
    onFailure: (error: unknown) => void;
    /** The first time comes at the start, and not only after a while. */
    beginsAtOnce?: boolean;
  },
): { stop(): Promise<void> } {
  let stopping = false;
  let working: Promise<void> | undefined;

  function begin(): void {
    working ??= work(() => !stopping)
      .catch((error: unknown) => {
        if (!options.isExpected(error)) throw error;
        options.onFailure(error);
      })
      .finally(() => {
        working = undefined;
      });
  }

  const timer = setInterval(begin, everyMs);
  if (options.beginsAtOnce) begin();
  return {
    async stop() {
      stopping = true;
      clearInterval(timer);
      await working;
    },
  };
}
