import type { IncomingMessage } from "node:http";

/** Many times what an ordinary context has. */
const largeContextBytes = 4 * 1024;

/** Whether a request's context may be so large that comparing with it takes long. */
export function isLargeContext(request: IncomingMessage, query: string): boolean {
  return contextBytes(request, query) > largeContextBytes;
}

/** How many bytes of a request may be about its user, at most. */
function contextBytes({ headers }: IncomingMessage, query: string): number {
  const inHeaders =
    lengthOf(headers["x-user-context"]) +
    lengthOf(headers["x-user-id"]) +
    lengthOf(headers["x-user-email"]) +
    lengthOf(headers["x-user-attributes"]);
  return query.length + inHeaders + bodyBytes(headers);
}

function lengthOf(header: string | string[] | undefined): number {
  return header === undefined ? 0 : header.length;
}

/** A body that does not say how long it is may be as long as any. */
function bodyBytes(headers: IncomingMessage["headers"]): number {
  const length = headers["content-length"];
  if (length !== undefined) return Number(length);
  return headers["transfer-encoding"] === undefined ? 0 : Number.POSITIVE_INFINITY;
}
