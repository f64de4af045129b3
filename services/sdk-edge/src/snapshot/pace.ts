/**
 * How soon after a change the next one is taken. What an environment of very many flags answers takes
 * milliseconds to work out anew, with every change; a burst of thousands of changes, one after the
 * other, would take all of an edge's time. So after such work the edge rests for a few times as long,
 * and takes what has come meanwhile together. A change that comes alone is not held up.
 */
export type Pace = {
  /** So long it took to work out what a change has changed. */
  addWork(ms: number): void;
  /** How long the next change should wait. */
  pauseMs(): number;
};

/** Working a quarter of the time leaves the rest for those who ask. */
const pausePerWork = 3;

/**
 * A change is to be seen within a second, the end of a key as well, and it waits for the work before it,
 * the rest, and its own work. So the quarter holds for work of up to a sixth of a second; longer work
 * gets more than its share.
 */
const maxPauseMs = 500;

export function createPace(monotonicMs: () => number): Pace {
  let pausedUntilMs = 0;
  return {
    addWork(ms) {
      pausedUntilMs = monotonicMs() + Math.min(ms * pausePerWork, maxPauseMs);
    },
    pauseMs: () => Math.max(0, pausedUntilMs - monotonicMs()),
  };
}
