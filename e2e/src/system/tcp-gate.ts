import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A TCP gate before a server on loopback. While it is shut, it passes nothing in either direction, and all connections
 * stay open, as in a network that drops packets. When it opens, everything arrives in order.
 */
export type TcpGate = {
  port: number;
  /** Makes new connections lead to another port. */
  leadTo(port: number): void;
  shut(): void;
  open(): void;
  close(): Promise<void>;
};

export async function openTcpGate(firstTarget: number): Promise<TcpGate> {
  const host = "127.0.0.1";
  const sockets = new Set<Socket>();
  let target = firstTarget;
  let isShut = false;

  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host, port: target, noDelay: true });
    join(client, upstream);
    join(upstream, client);
  });

  function join(from: Socket, to: Socket): void {
    sockets.add(from);
    from
      .on("data", (data) => void to.write(data))
      .on("error", () => undefined)
      .on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    if (isShut) from.pause();
  }

  server.listen(0, host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    leadTo: (port) => {
      target = port;
    },
    shut() {
      isShut = true;
      for (const socket of sockets) socket.pause();
    },
    open() {
      isShut = false;
      for (const socket of sockets) socket.resume();
    },
    async close() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, "close");
    },
  };
}
