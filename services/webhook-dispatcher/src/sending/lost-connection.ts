import type { ClientRequest } from "node:http";
import type { Socket } from "node:net";
import { type Request, RequestError } from "got";

/** How Node.js tells that the other side has closed the connection. */
const closedCodes: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/**
 * Watches a request for what happens when the target closes a kept connection just as it is sent: the
 * connection ends without a byte of an answer, and the request was most likely not even read. Some targets
 * close every connection after an answer without saying so. Answers whether a failure was this one.
 */
export function watchForLostConnection(stream: Request): (failure: unknown) => boolean {
  let kept: { socket: Socket; bytesBefore: number } | undefined;
  stream.once("request", (request: ClientRequest) => {
    request.once("socket", (socket) => {
      if (request.reusedSocket) kept = { socket, bytesBefore: socket.bytesRead };
    });
  });
  return (failure) =>
    failure instanceof RequestError &&
    closedCodes.has(failure.code) &&
    kept !== undefined &&
    kept.socket.bytesRead === kept.bytesBefore;
}
