/** Network, clock and random numbers of the client. Tests replace them. */
export type Platform = {
  readonly fetch: typeof globalThis.fetch;
  readonly clock: Clock;
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number;
};

export type Clock = {
  /** Milliseconds on a clock that is never set. */
  monotonicMs(): number;
  /** Milliseconds since 1970. */
  wallMs(): number;
  /**
   * Calls back once after a delay, and returns a function that cancels the call. With `background`, a pending call does
   * not keep the process running.
   */
  after(delayMs: number, callback: () => void, options?: { background?: boolean }): () => void;
};

/** Maximum delay of a timer in Node.js. A longer one would fire immediately. */
const maxDelayMs = 2 ** 31 - 1;

const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, callback, { background = false } = {}) {
    const timer = setTimeout(callback, Math.min(delayMs, maxDelayMs));
    if (background) timer.unref();
    return () => clearTimeout(timer);
  },
};

export const systemPlatform: Platform = {
  // Looked up for each request, so that instrumentation that replaces the global function is used.
  fetch: (input, init) => globalThis.fetch(input, init),
  clock: systemClock,
  random: Math.random,
};
