export type ErrorCode =
  /** The base address or the key is missing or has the wrong form. */
  | "invalid_options"
  /** 401: the key is unknown, expired or revoked. */
  | "unauthorized"
  /** 403: the key is neither a reader key nor a server key. */
  | "forbidden"
  /** 429: a limit of the plan or a rate limit. The client continues by polling, or after the time in `Retry-After`. */
  | "limited"
  /** A response with status 5xx. */
  | "unavailable"
  /** Any other response that no Halyard edge sends. The base address may be wrong, or a firewall sent it. */
  | "unexpected_response"
  /** No connection, or no complete response in time. */
  | "unreachable"
  /** A stream was requested or open, and sent nothing in time. */
  | "no_events"
  /** An event or a response that cannot be read. The client keeps the flags that it has. */
  | "invalid_data"
  /** A part of the list of an audience cannot be loaded. Flags that use the list keep their previous state for 30 s. */
  | "list"
  /** The cache file cannot be read or written. */
  | "cache_file"
  /** The usage counts were rejected. */
  | "usage"
  /** A listener of the application threw an exception. */
  | "listener";

/** A problem that the client reports through the event `error` and its logger. It is never thrown. */
export class HalyardError extends Error {
  override readonly name = "HalyardError";
  readonly code: ErrorCode;
  /** True if the client has stopped for good and needs another key or other options. */
  readonly fatal: boolean;

  constructor(
    code: ErrorCode,
    message: string,
    options: { fatal?: boolean; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.fatal = options.fatal ?? false;
  }
}
