import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Bounds the requests that a client sends without waiting for responses. Node emits every request that it has parsed, so
 * such a client could otherwise have any number of requests in flight. While a request waits for the response to its
 * predecessor, its connection is not read. At most one read of 64 KiB is in flight on each connection.
 */
export function boundPipelining(server: Server): void {
  /** The requests behind the one whose response comes next, by connection. Absent: none was ever sent that way. */
  const waitingOn = new Map<Socket, number>();
  let waitingCount = 0;

  function change(socket: Socket, by: number): void {
    waitingCount += by;
    const waiting = (waitingOn.get(socket) ?? 0) + by;
    waitingOn.set(socket, waiting);
    if (waiting === 0) socket.resume();
  }

  function forget(socket: Socket): void {
    waitingCount -= waitingOn.get(socket) ?? 0;
    waitingOn.delete(socket);
  }

  server.prependListener("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    // Node gives a response its socket when the responses before it have ended.
    if (response.socket !== null) return;
    if (!waitingOn.has(socket)) socket.once("close", () => forget(socket));
    change(socket, 1);
    response.once("socket", () => waitingOn.has(socket) && change(socket, -1));
    if (waitingCount > maxWaiting) socket.destroy();
    // The parser resumes the connection at the end of each parsed request, so the pause must come later.
    else process.nextTick(() => (waitingOn.get(socket) ?? 0) > 0 && socket.pause());
  });
}

/**
 * Maximum number of waiting requests on all connections together, which bounds their memory: about 3 KiB each. Beyond
 * it, the connection is closed, which HTTP allows at any time with a client that pipelines.
 */
const maxWaiting = 10_000;
