/**
 * Runs long work on the event loop in time slices. Between two slices, the event loop handles all other ready events,
 * so no request waits for more than one slice.
 */
type TimeSlicer = {
  /** Starts the work if it is not running. With `atOnce`, the first slice runs before the call returns. */
  start(options?: { atOnce: boolean }): void;
  /** Runs no further slice. Remaining work is dropped. */
  stop(): void;
};

/** Long work that can be interrupted after each step. */
export type Steps = Generator<undefined, void>;

export function createTimeSlicer(options: {
  /** Works until `isOver` returns true or no work is left. Returns whether work is left. */
  work: (isOver: () => boolean) => boolean;
  /** Length of a slice. The last step of a slice may exceed it. */
  sliceMs: number;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
}): TimeSlicer {
  const { work, sliceMs, monotonicMs } = options;
  let next: NodeJS.Immediate | undefined;
  /** True from `start` until no work is left, so that a call of `start` by the work itself has no effect. */
  let isActive = false;
  let isStopped = false;

  function runSlice(): void {
    const untilMs = monotonicMs() + sliceMs;
    let isLeft = false;
    try {
      isLeft = work(() => monotonicMs() >= untilMs);
    } finally {
      // After an error, `start` can start the work again.
      isActive = isLeft;
    }
    if (isLeft && !isStopped) next = setImmediate(runSlice);
  }

  return {
    start({ atOnce } = { atOnce: false }) {
      if (isActive || isStopped) return;
      isActive = true;
      if (atOnce) runSlice();
      else next = setImmediate(runSlice);
    },
    stop() {
      isStopped = true;
      clearImmediate(next);
    },
  };
}

/** Runs steps until the slice is over. Returns whether all steps are complete. */
export function runSteps(steps: Steps, isOver: () => boolean): boolean {
  while (!isOver()) if (steps.next().done === true) return true;
  return false;
}
