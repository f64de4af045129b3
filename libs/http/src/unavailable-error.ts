/** A dependency of a request is unavailable. The response is 503 with `Retry-After`. */
export class UnavailableError extends Error {
  override readonly name: string = "UnavailableError";
  readonly hasSafeMessage = true;
  readonly retryAfterSeconds: number;

  constructor(message: string, options: { retryAfterSeconds?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterSeconds = options.retryAfterSeconds ?? defaultRetryAfterSeconds;
  }
}

/** Default of `Retry-After`. Most outages are restarts, and earlier retries would only add load. */
export const defaultRetryAfterSeconds = 1;

/**
 * Returns the time after which the client should retry; undefined for an error without `retryAfterSeconds`. Libraries
 * without knowledge of HTTP can set this member on their errors too.
 */
export function retryAfterOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("retryAfterSeconds" in error))
    return undefined;
  return typeof error.retryAfterSeconds === "number" ? error.retryAfterSeconds : undefined;
}
