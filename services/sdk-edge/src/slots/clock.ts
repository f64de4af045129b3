/**
 * Time as a process measures it by itself: it only ever grows, and never by less than has passed.
 *
 * The clock that only grows stands still while a machine is suspended, and the clock on the wall does
 * not; so what the latter leaps ahead of the former counts too. Setting the clock on the wall ahead
 * looks the same. It costs an edge its lease, which is safe; setting it back counts as nothing.
 */
export type Clock = {
  elapsed(): number;
  /** Does something later, unless it is called off. No process is kept alive for it. */
  after(delayMs: number, work: () => void): () => void;
};

/** Milliseconds by which the two clocks may part in between without a leap: they do not tick alike. */
const leastLeapMs = 1_000;

/** `growing` and `wall`: milliseconds by the clock that only grows, and by the one that can be set. */
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

/** Waits for a while. */
export function rest(clock: Clock, restMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(restMs, resolve));
}

/** Rests that can be ended before their time. */
export type Rests = { rest(restMs: number): Promise<void>; hurry(): void };

export function createRests(clock: Clock): Rests {
  let wake: (() => void) | undefined;
  return {
    rest: (restMs) =>
      new Promise((resolve) => {
        const callOff = clock.after(restMs, resolve);
        wake = () => {
          callOff();
          resolve();
        };
      }),
    hurry: () => wake?.(),
  };
}
