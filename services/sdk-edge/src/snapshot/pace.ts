/**
 * How soon after a change the next one is taken. What an environment of very many flags answers takes
 * milliseconds to work out anew, with every change; a burst of thousands of changes, one after the
 * other, would take all of an edge's time. So after such work the edge rests for a few times as long,
 * and takes what has come meanwhile together. A change that comes alone is not held up.
 */
export type Pace = {
  /** So long it took to work out what a change has changed. */
  worked(ms: number): void;
  /** How long the next change should wait. */
  restMs(): number;
};

/** Working a quarter of the time leaves the rest for those who ask. */
const restsPerWork = 3;

/**
 * A change is to be seen within a second, the end of a key as well, and it waits for the work before it,
 * the rest, and its own work. So the quarter holds for work of up to a sixth of a second; longer work
 * gets more than its share.
 */
const longestRestMs = 500;

export function createPace(monotonicMs: () => number): Pace {
  let restUntilMs = 0;
  return {
    worked(ms) {
      restUntilMs = monotonicMs() + Math.min(ms * restsPerWork, longestRestMs);
    },
    restMs: () => Math.max(0, restUntilMs - monotonicMs()),
  };
}
