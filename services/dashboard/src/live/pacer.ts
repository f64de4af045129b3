type Pace = {
  /** Time over which the first requests after a silence are collected. */
  collectMs: number;
  /** Minimum time between two runs. */
  everyMs: number;
};

/**
 * Limits how often `run` is called, however often it is requested. A run follows every request, so the last of many
 * requests is not lost.
 */
export function createPacer(run: () => void, { collectMs, everyMs }: Pace) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lastRun = Number.NEGATIVE_INFINITY;

  function start(): void {
    timer = undefined;
    lastRun = performance.now();
    run();
  }

  return {
    /** Requests a run. After a silence it starts in `afterMs`. */
    request(afterMs = collectMs): void {
      timer ??= setTimeout(start, Math.max(afterMs, lastRun + everyMs - performance.now()));
    },
    stop: () => clearTimeout(timer),
  };
}
