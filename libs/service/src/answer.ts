import type { ErrorCode } from "@halyard/contracts";

/**
 * What a handler answers, as plain data: an `Answer`, or a `Problem` with one of the API's error
 * codes. Refusals are expected outcomes and therefore values; only what should not happen is thrown.
 */
export type Answer = {
  status: number;
  /** Written as JSON; absent for an answer without a body. */
  body?: unknown;
  /** JSON that is written already, in place of `body`. */
  json?: Buffer;
  /**
   * The JSON text in parts, in place of `body`, each produced when the caller has received the previous one.
   * A failure between parts closes the connection, because a body that ends early would look complete.
   */
  parts?: AsyncIterable<string>;
  headers?: Readonly<Record<string, string>>;
};

export type Problem = {
  rejected: ErrorCode;
  message: string;
  headers?: Readonly<Record<string, string>>;
};

/** `etag` is the complete header value, with its quotes. */
type Tag = { etag?: string };

export const answer = {
  ok(body: unknown, { etag }: Tag = {}): Answer {
    return etag === undefined ? { status: 200, body } : { status: 200, body, headers: { etag } };
  },

  /** A body that is written while it is produced, without `Content-Length`. */
  inParts(parts: AsyncIterable<string>): Answer {
    return { status: 200, parts };
  },

  created(location: string, body: unknown, { etag }: Tag = {}): Answer {
    const headers = etag === undefined ? { location } : { location, etag };
    return { status: 201, body, headers };
  },

  /** Taken over, to be done in a moment. */
  accepted(body: unknown): Answer {
    return { status: 202, body };
  },

  /** The caller has the current representation, which `etag` names. */
  notModified(etag: string): Answer {
    return { status: 304, headers: { etag } };
  },

  noContent(): Answer {
    return { status: 204 };
  },
};

export function createProblem(
  rejected: ErrorCode,
  message: string,
  headers?: Readonly<Record<string, string>>,
): Problem {
  return headers === undefined ? { rejected, message } : { rejected, message, headers };
}

export function isProblem(value: object): value is Problem {
  return "rejected" in value;
}
