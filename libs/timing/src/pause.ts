/**
 * Waits for `ms` milliseconds, rounded up. Returns false if the signal ends the pause early or was already aborted. The
 * timer keeps the process alive.
 */
export function pause(ms: number, signal?: AbortSignal): Promise<boolean> {
  if (signal?.aborted) return Promise.resolve(false);
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const onAbort = () => resolve(false);
  // A timer truncates fractions, so without rounding it would end up to a millisecond early.
  const timer = setTimeout(resolve, Math.max(0, Math.ceil(ms)), true);
  signal?.addEventListener("abort", onAbort, { once: true });
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  });
}
