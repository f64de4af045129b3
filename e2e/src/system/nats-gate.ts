import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/**
 * A proxy between one process and the NATS server. While the gate is shut, it holds what the process sends. When the
 * gate opens, everything arrives in order. A test can thereby delay messages deterministically; pausing a process alone
 * cannot do that.
 */
export type NatsGate = {
  url: string;
  shut(): void;
  /** Shuts the gate before the first data that contains a text, such as that of an acknowledgement. */
  shutBefore(text: string): void;
  open(): void;
  /** Returns whether the data held at the gate contain a text, such as the subject of a message. */
  holds(text: string): boolean;
  /** Returns the number of bytes held at the gate. */
  waitingBytes(): number;
  /** Sends text to the process in place of the server. */
  sendToClient(text: string): void;
  close(): Promise<void>;
};

export async function openNatsGate(natsUrl: string): Promise<NatsGate> {
  const { hostname, port } = new URL(natsUrl);
  const connections = new Set<{
    send: () => void;
    sendToClient: (text: string) => void;
    end: () => void;
    waiting: Buffer[];
  }>();
  let isShut = false;
  let shutsBefore: string | undefined;

  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(port), noDelay: true });
    const connection = {
      waiting: [] as Buffer[],
      send: () => {
        for (const data of connection.waiting.splice(0)) upstream.write(data);
      },
      sendToClient: (text: string) => void client.write(text),
      end: () => destroy(client, upstream),
    };
    connections.add(connection);
    client.on("data", (data) => {
      connection.waiting.push(data);
      if (shutsBefore !== undefined && data.includes(shutsBefore)) isShut = true;
      if (!isShut) connection.send();
    });
    upstream.on("data", (data) => void client.write(data));
    for (const socket of [client, upstream])
      socket
        .on("error", () => undefined)
        .on("close", () => {
          // Data from a process that has died are still delivered when the gate opens.
          if (socket === client && connection.waiting.length > 0) return;
          connection.end();
          connections.delete(connection);
        });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a TCP server has a port");
  return {
    url: `nats://127.0.0.1:${address.port}`,
    shut: () => {
      isShut = true;
    },
    shutBefore: (text) => {
      shutsBefore = text;
    },
    open: () => {
      isShut = false;
      shutsBefore = undefined;
      for (const connection of connections) connection.send();
    },
    waitingBytes: () =>
      [...connections]
        .flatMap((connection) => connection.waiting)
        .reduce((sum, data) => sum + data.length, 0),
    holds: (text) => [...connections].some(({ waiting }) => Buffer.concat(waiting).includes(text)),
    sendToClient: (text) => {
      for (const connection of connections) connection.sendToClient(text);
    },
    async close() {
      for (const connection of connections) connection.end();
      server.close();
    },
  };
}

function destroy(...sockets: Socket[]): void {
  for (const socket of sockets) socket.destroy();
}
