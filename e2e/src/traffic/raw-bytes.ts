import { connect, type Socket } from "node:net";

/** What a connection answers to bytes that may be no HTTP at all, until it is closed. */
export function exchangeBytes(url: string, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const socket = open(url, bytes);
    socket.on("data", (chunk) => chunks.push(chunk));
    // A reset is an answer as well.
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(Buffer.concat(chunks).toString("latin1")));
  });
}

/** Sends bytes and goes away, in order or not, without waiting for an answer. */
export function sendAndLeave(
  url: string,
  bytes: string | Buffer,
  leave: (socket: Socket) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const socket = open(url, bytes, () => leave(socket));
    socket.on("error", () => undefined);
    socket.on("data", () => undefined);
    socket.on("close", () => resolve());
  });
}

function open(url: string, bytes: string | Buffer, sent?: () => void): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  socket.write(bytes, () => sent?.());
  return socket;
}
