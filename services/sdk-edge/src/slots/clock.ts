/**
 * Elapsed time of a process. It never runs backwards and includes suspensions of the machine: the monotonic
 * clock stands still then, so a leap of the wall clock ahead of it is added. A wall clock that is set ahead
 * looks the same. The edge then renews its entry and writes its counts again, which is harmless.
 */
export type Clock = {
  elapsed(): number;
  /** Calls `work` later. Returns a function that cancels it. The timer keeps no process alive. */
  after(delayMs: number, work: () => void): () => void;
};

/** Minimum difference that counts as a leap. The two clocks run at slightly different rates. */
const leastLeapMs = 1_000;

/** `growing` is the monotonic clock and `wall` the wall clock, both in milliseconds. */
export function createElapsed(growing: () => number, wall: () => number): () => number {
  let wallAheadMs = wall() - growing();
  let leaptMs = 0;
  return () => {
    const nowMs = growing();
    const aheadMs = wall() - nowMs;
    if (aheadMs - wallAheadMs > leastLeapMs) leaptMs += aheadMs - wallAheadMs;
    wallAheadMs = aheadMs;
    return nowMs + leaptMs;
  };
}

export const processClock: Clock = {
  elapsed: createElapsed(() => performance.now(), Date.now),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

export function rest(clock: Clock, restMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(restMs, resolve));
}
