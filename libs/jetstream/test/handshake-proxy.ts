import { once } from "node:events";
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from "node:net";

/**
 * A TCP proxy before a NATS server. It can break handshakes: the client receives the server's INFO, sends
 * CONNECT and PING, and loses the connection before PONG.
 */
export type HandshakeProxy = {
  url: string;
  /** Closes all open connections, and breaks the next ones during their handshake. */
  breakHandshakes(): void;
  /** Lets new connections through. */
  restore(): void;
  /** Number of handshakes broken so far. */
  broken(): number;
  close(): Promise<void>;
};

export async function startHandshakeProxy(natsUrl: string): Promise<HandshakeProxy> {
  const { hostname, port } = new URL(natsUrl);
  const open = new Set<Socket>();
  let isBreaking = false;
  let broken = 0;

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
    client.on("data", (bytes) => {
      if (!isBreaking) {
        upstream.write(bytes);
        return;
      }
      broken += 1;
      client.destroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  function closeOpen(): void {
    for (const socket of open) socket.destroy();
  }
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    breakHandshakes() {
      isBreaking = true;
      closeOpen();
    },
    restore() {
      isBreaking = false;
    },
    broken: () => broken,
    async close() {
      server.close();
      closeOpen();
      await once(server, "close");
    },
  };
}
