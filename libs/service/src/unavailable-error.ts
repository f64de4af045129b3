/** A part that a call needs is away. The caller is asked to come back: 503 with `Retry-After`. */
export class UnavailableError extends Error {
  override readonly name: string = "UnavailableError";
  readonly hasSafeMessage = true;
  readonly retryAfterSeconds: number;

  constructor(message: string, options: { retryAfterSeconds?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.retryAfterSeconds = options.retryAfterSeconds ?? defaultRetryAfterSeconds;
  }
}

/** Most outages of a part are a restart; sooner would only add load to it. */
export const defaultRetryAfterSeconds = 1;

/**
 * How long the caller should wait, for an error that says so; undefined for any other. Errors of
 * libraries that know nothing about HTTP count as well, by carrying `retryAfterSeconds`.
 */
export function retryAfterOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("retryAfterSeconds" in error))
    return undefined;
  return typeof error.retryAfterSeconds === "number" ? error.retryAfterSeconds : undefined;
}
