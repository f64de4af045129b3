import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/**
 * The way from one process to the NATS server, with a gate in it. While the gate is shut, what the
 * process sends is kept; when it opens, everything arrives in order. So a test decides for certain
 * what "too late" means, which a stopped process alone leaves to chance.
 */
export type NatsGate = {
  url: string;
  shut(): void;
  /** Shuts by itself before the first data that holds a text, such as an acknowledgement's. */
  shutBefore(text: string): void;
  open(): void;
  /** Whether a text, such as the subject of a message, is among what waits at the gate. */
  holds(text: string): boolean;
  /** How many bytes are waiting at the gate. */
  waitingBytes(): number;
  /** Sends text to the process in the place of the server. */
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
          // What was on its way from a process that has died is still delivered once the gate opens.
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
