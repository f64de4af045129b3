import type { ServerResponse } from "node:http";
import type { ErrorCode } from "@halyard/contracts";

/**
 * The response of a handler, as plain data: an `Answer`, or a `Problem` with an error code of the API. Problems are
 * expected outcomes and therefore values. Handlers throw only for outages and bugs.
 */
export type Answer = {
  status: number;
  /** The body, sent as JSON. Absent for a response without a body. */
  body?: unknown;
  /** The body as serialized JSON, instead of `body`. */
  json?: Buffer;
  /**
   * The JSON text in parts, instead of `body`. Each part is produced after the client has received the previous one.
   * A failure between parts closes the connection, because a body that ends early would look complete.
   */
  parts?: AsyncIterable<string>;
  /** Begins a stream of server-sent events, whose headers are set. The receiver writes its events and ends it. */
  stream?: (response: ServerResponse) => void;
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

  /** A body that is sent while it is produced, without `Content-Length`. */
  inParts(parts: AsyncIterable<string>): Answer {
    return { status: 200, parts };
  },

  /** Server-sent events. */
  stream(begin: (response: ServerResponse) => void): Answer {
    return { status: 200, stream: begin };
  },

  created(location: string, body: unknown, { etag }: Tag = {}): Answer {
    const headers = etag === undefined ? { location } : { location, etag };
    return { status: 201, body, headers };
  },

  /** The request is accepted and will be processed shortly. */
  accepted(body: unknown): Answer {
    return { status: 202, body };
  },

  /** The client already has the current representation, identified by `etag`. */
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
