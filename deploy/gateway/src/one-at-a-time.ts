import type { Socket } from "node:net";
import type { App } from "@halyard/http";

/**
 * Serves the requests of one connection one after another. Node emits every request that it has parsed, so a client
 * that pipelines could otherwise have thousands of requests in flight. While a request waits for its predecessor, the
 * gateway does not read from the connection. At most one read of 64 KiB waits there as parsed requests.
 */
export type ConnectionActivity = {
  /** The connection's first request in flight begins. */
  busy: (socket: Socket) => void;
  /** The connection has no request in flight any more. */
  idle: (socket: Socket) => void;
};

/**
 * Maximum number of waiting requests on all connections together, which bounds their memory: about 3 KiB each. Beyond
 * it, the connection is closed, which HTTP allows at any time with a client that pipelines.
 */
const maxWaiting = 10_000;

export function serveOneAtATime(app: App, activity: ConnectionActivity): void {
  /** The requests waiting behind the one in flight, by connection. */
  const waitingOn = new Map<Socket, (() => void)[]>();
  let waitingCount = 0;

  function forget(socket: Socket): void {
    waitingCount -= waitingOn.get(socket)?.length ?? 0;
    waitingOn.delete(socket);
  }

  function next(socket: Socket): void {
    if (socket.destroyed) forget(socket);
    const waiting = waitingOn.get(socket);
    if (waiting === undefined) return;
    const serve = waiting.shift();
    if (serve === undefined) {
      waitingOn.delete(socket);
      activity.idle(socket);
      return;
    }
    waitingCount -= 1;
    if (waiting.length === 0) socket.resume();
    serve();
  }

  app.server.on("connection", (socket: Socket) => {
    socket.once("close", () => forget(socket));
  });

  app.addHook("onRequest", (request, reply, done) => {
    const { socket } = request.raw;
    const serve = () => {
      reply.raw.once("close", () => next(socket));
      done();
    };
    const waiting = waitingOn.get(socket);
    if (waiting === undefined) {
      waitingOn.set(socket, []);
      activity.busy(socket);
      serve();
      return;
    }
    waitingCount += 1;
    waiting.push(serve);
    if (waitingCount > maxWaiting) socket.destroy();
    // The parser resumes the connection at the end of each parsed request, so the pause must come later.
    else process.nextTick(() => waiting.length > 0 && socket.pause());
  });
}
