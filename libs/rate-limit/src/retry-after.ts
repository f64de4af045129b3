/** Maximum `Retry-After`, so that waiting clients soon notice a larger plan. `RateLimit` has the time of the reset. */
const maxRetryAfterSeconds = 600;

/** Returns the `Retry-After` of a 429 for a limit that resets after some seconds. */
export function retryAfter(secondsToReset: number): string {
  return String(Math.min(secondsToReset, maxRetryAfterSeconds));
}
