/**
 * Detects a lack of progress. It counts checks instead of time, because time also passes while the process is
 * suspended.
 */
export type Watchdog = {
  progress(): void;
  stop(): void;
};

/** Number of checks in `stalledAfterMs`. */
const checksUntilStalled = 10;

export function startWatchdog(options: {
  /** Time without progress after which `onStalled` is called, and called again after the same time. */
  stalledAfterMs: number;
  /** Returns whether progress is expected at the time of a check. By default it always is. */
  isExpected?: () => boolean;
  onStalled: () => void;
}): Watchdog {
  const { stalledAfterMs, isExpected = () => true, onStalled } = options;
  let idleChecks = 0;

  function check(): void {
    idleChecks = isExpected() ? idleChecks + 1 : 0;
    if (idleChecks < checksUntilStalled) return;
    idleChecks = 0;
    onStalled();
  }

  const timer = setInterval(check, stalledAfterMs / checksUntilStalled).unref();
  return {
    progress() {
      idleChecks = 0;
    },
    stop: () => clearInterval(timer),
  };
}
