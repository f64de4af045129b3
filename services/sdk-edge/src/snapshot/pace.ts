/**
 * Delay between changes. With very many flags in an environment, each change costs milliseconds for the new view. A
 * burst of thousands of changes would use all of an edge's time. So after a change, the edge pauses for a multiple of
 * that time. It then applies all changes that arrived meanwhile together. A single change is not delayed.
 */
export type Pace = {
  /** Records the time that it took to update the views for a change. */
  addWork(ms: number): void;
  /** Returns the time that the next change has to wait. */
  pauseMs(): number;
};

/**
 * Length of a pause, as a multiple of the work before it. The updates take a quarter of the time at most, and the rest
 * serves requests.
 */
const pausePerWork = 3;

/**
 * Maximum pause. Every change must take effect within a second, including the end of a key. It waits for the work of the
 * previous change, the pause, and its own work. The quarter therefore holds for work of up to a sixth of a second;
 * longer work takes a larger share.
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
