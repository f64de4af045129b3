import type { Clock } from "../platform.ts";

const tickMs = 5_000;
/** Delay of a tick that means that the process did not run. A busy event loop delays ticks by less. */
const suspendedMs = 10_000;

/**
 * Calls back when the process continues after a suspension, for example of a laptop or a paused container. Its
 * connections may be dead without a notice then. Some systems stop the monotonic clock meanwhile, so both clocks count.
 * A wall clock that is set forward looks like a suspension and causes one reconnection. Returns a function that stops.
 */
export function watchForSuspension(clock: Clock, onResume: () => void): () => void {
  let lastMonotonicMs = clock.monotonicMs();
  let lastWallMs = clock.wallMs();
  let cancel = clock.after(tickMs, tick, { background: true });

  function tick(): void {
    const monotonicMs = clock.monotonicMs();
    const wallMs = clock.wallMs();
    const elapsedMs = Math.max(monotonicMs - lastMonotonicMs, wallMs - lastWallMs);
    lastMonotonicMs = monotonicMs;
    lastWallMs = wallMs;
    cancel = clock.after(tickMs, tick, { background: true });
    if (elapsedMs > tickMs + suspendedMs) onResume();
  }

  return () => cancel();
}
