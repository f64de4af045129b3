/**
 * Detects a lack of progress. It counts checks instead of time, because time also passes while the process is
 * suspended.
 */
export type Watchdog = {
  /** The work has made progress. */
  progress(): void;
  stop(): void;
};

/** Number of checks in `stalledAfterMs`. */
const checksUntilStalled = 10;

export function startWatchdog(options: {
  /** Time without progress after which `onStalled` is called, and again after each further such time. */
  stalledAfterMs: number;
  /** Returns whether progress is expected at the time of a check; by default always. */
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
