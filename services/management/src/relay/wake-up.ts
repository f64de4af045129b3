/**
 * Waiting that ends by a hint or by the clock, whichever is first. The hint carries nothing: who is
 * woken looks for himself, so a hint too many or too few does no harm.
 */
export type WakeUp = {
  wake(): void;
  waitAtMost(ms: number, signal: AbortSignal): Promise<void>;
  /** Waits for the time alone; only the signal ends it early. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
};

export function createWakeUp(): WakeUp {
  let sleepers = new Set<() => void>();

  function wait(ms: number, signal: AbortSignal, wakers: Set<() => void> | undefined) {
    if (signal.aborted) return Promise.resolve();
    return new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        wakers?.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener("abort", done, { once: true });
      wakers?.add(done);
    });
  }

  return {
    wake() {
      const woken = sleepers;
      sleepers = new Set();
      for (const sleeper of woken) sleeper();
    },
    waitAtMost: (ms, signal) => wait(ms, signal, sleepers),
    sleep: (ms, signal) => wait(ms, signal, undefined),
  };
}
