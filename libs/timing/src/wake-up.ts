import { pause } from "./pause.ts";

/**
 * The sleep of one loop, which ends early when there is work. A call of `wake` during the work ends the next sleep.
 * Otherwise new work that the current run has missed would wait for the whole sleep.
 */
export type WakeUp = {
  wake(): void;
  /** Sleeps for at most `ms` milliseconds. The signal ends this sleep and prevents later ones. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
};

/** Creates the wake-up of one loop. Each loop needs its own. */
export function createWakeUp(): WakeUp {
  let waking = new AbortController();
  return {
    // Without an explicit reason, each call would create an error with a stack trace.
    wake: () => waking.abort(null),
    async sleep(ms, signal) {
      const wake = () => waking.abort(null);
      if (signal?.aborted) return;
      signal?.addEventListener("abort", wake, { once: true });
      await pause(ms, waking.signal);
      signal?.removeEventListener("abort", wake);
      waking = new AbortController();
    },
  };
}
