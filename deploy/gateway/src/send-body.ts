import type { ClientRequest, IncomingMessage } from "node:http";

/** Calls `then` when the body has arrived, or as much of it as Node buffers: 64 KiB. */
export function whenBuffered(caller: IncomingMessage, then: () => void): void {
  const isBuffered = () =>
    hasArrived(caller) || caller.readableLength >= caller.readableHighWaterMark;
  const check = () => {
    if (!isBuffered()) return;
    caller.off("readable", check);
    then();
  };
  if (hasArrived(caller)) then();
  // A small body arrives with its headers as a rule, and the parser reads both in the same turn.
  else process.nextTick(() => (isBuffered() ? then() : caller.on("readable", check)));
}

/** Returns whether the request has no body, or the whole body has been received. */
export function hasArrived(caller: IncomingMessage): boolean {
  return caller.complete || !hasBody(caller);
}

/** Hands the caller's body on as it comes, and not before there is a connection that can take it. */
export function sendBody(caller: IncomingMessage, outgoing: ClientRequest): void {
  if (!hasBody(caller)) {
    outgoing.end();
    return;
  }
  // Not `pipeline`: an upstream that answers before it has read everything, and closes, must not
  // take the caller's connection along, on which that answer is still to be sent.
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
