import type { ClientRequest, IncomingMessage } from "node:http";

/** Calls `then` when the whole body has arrived, or as much of it as Node buffers: 64 KiB. */
export function whenBuffered(caller: IncomingMessage, then: () => void): void {
  const isBuffered = () =>
    hasArrived(caller) || caller.readableLength >= caller.readableHighWaterMark;
  const check = () => {
    if (!isBuffered()) return;
    caller.off("readable", check);
    then();
  };
  if (hasArrived(caller)) then();
  // A small body usually arrives with its headers, and the parser reads both in the same turn.
  else process.nextTick(() => (isBuffered() ? then() : caller.on("readable", check)));
}

/** Returns whether the request has no body, or its body has been received completely. */
export function hasArrived(caller: IncomingMessage): boolean {
  return caller.complete || !hasBody(caller);
}

/** Forwards the client's body as it arrives. It is not read before the connection to the upstream is established. */
export function sendBody(caller: IncomingMessage, outgoing: ClientRequest): void {
  if (!hasBody(caller)) {
    outgoing.end();
    return;
  }
  // `pipeline` would destroy the client's connection if the upstream responds before it has read the whole body and
  // then closes. The response still has to be sent over that connection.
  const send = () => {
    caller.pipe(outgoing);
    outgoing.once("close", () => {
      caller.unpipe(outgoing);
      caller.resume();
    });
  };
  outgoing.once("socket", (socket) => {
    if (socket.connecting) socket.once("connect", send);
    else send();
  });
}

export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}
