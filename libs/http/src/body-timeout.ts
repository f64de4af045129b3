import type { IncomingMessage, Server } from "node:http";

/**
 * Bounds the time in which bodies arrive, on a server whose own time-out is long because some bodies are. Every body has
 * the short time, before its request is authenticated, until `allowLongBody` is called.
 */
export const defaultBodyTimeoutMs = 60_000;

const timers = new WeakMap<IncomingMessage, NodeJS.Timeout>();

export function boundBodies(server: Server, withinMs: number): void {
  server.on("request", (request) => {
    if (!hasBody(request)) return;
    boundBody(request, withinMs);
    request.once("close", () => allowLongBody(request));
  });
}

/** Closes the connection if the rest of a body does not arrive in time. */
export function boundBody(request: IncomingMessage, withinMs = defaultBodyTimeoutMs): void {
  allowLongBody(request);
  const timer = setTimeout(() => {
    if (!request.complete) request.socket.destroy();
  }, withinMs);
  timers.set(request, timer.unref());
}

/** Leaves a body only the time-out of the server. */
export function allowLongBody(request: IncomingMessage): void {
  clearTimeout(timers.get(request));
}

/** Maximum number of bytes that are read after a response, so that the client receives it. */
const maxDiscardedBytes = 64 * 1024 * 1024;

/**
 * Reads the rest of a body after an early response. Node does so only if nothing was read, and otherwise keeps the
 * connection busy. An iterator that the handler has left detaches in the next tick, and would stop the stream again.
 */
export function discardRest(body: IncomingMessage): void {
  if (body.readableEnded) return;
  boundBody(body);
  let bytes = 0;
  setImmediate(() =>
    body.on("data", (part: Buffer) => {
      bytes += part.length;
      if (bytes > maxDiscardedBytes) body.socket.destroy();
    }),
  );
}

export const hasBody = ({ headers }: Pick<IncomingMessage, "headers">): boolean =>
  headers["transfer-encoding"] !== undefined || headers["content-length"] !== undefined;
