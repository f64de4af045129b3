import { cacheHeadersOf, sdkStream } from "@halyard/contracts";
import { refuse } from "@halyard/service";
import { commonHeaders } from "./common-headers.ts";
import type { Exchange } from "./endpoint.ts";

/**
 * Closes the connection, also when the edge began to drain after the request arrived: a gateway sends a read to
 * another edge only then.
 */
export const elsewhere = refuse("SERVER_002", "This edge is stopping; connect again.", {
  connection: "close",
});

/** Writes the head of an answer without an end. */
export function beginStream({ response, id, rateLimit }: Exchange): void {
  // Without chunks the bytes of an event are the same for everybody; the connection's end ends it.
  response.removeHeader("transfer-encoding");
  response.writeHead(200, ["X-Request-Id", id, ...streamHeaders, ...rateLimit]);
}

const streamHeaders: readonly string[] = [
  "Content-Type",
  "text/event-stream",
  ...Object.entries(cacheHeadersOf(sdkStream)).flat(),
  "X-Accel-Buffering",
  "no",
  "Connection",
  "close",
  ...commonHeaders,
];
