import type { ClientRequest, IncomingMessage } from "node:http";

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
