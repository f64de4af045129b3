import { once } from "node:events";
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from "node:net";

/** A TCP proxy before a NATS server. `forward` forwards the data of clients; the server's data passes unchanged. */
export type NatsProxy = {
  url: string;
  /** Closes all open connections. The proxy accepts new ones. */
  closeConnections(): void;
  close(): Promise<void>;
};

export async function startNatsProxy(
  natsUrl: string,
  forward: (client: Socket, upstream: Socket) => void,
): Promise<NatsProxy> {
  const { hostname, port } = new URL(natsUrl);
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connectSocket(Number(port), hostname);
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        open.delete(socket);
        peer.destroy();
      });
    }
    upstream.pipe(client);
    forward(client, upstream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  function closeConnections(): void {
    for (const socket of open) socket.destroy();
  }
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    closeConnections,
    async close() {
      server.close();
      closeConnections();
      await once(server, "close");
    },
  };
}
