import { once } from "node:events";
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** A TCP proxy before a NATS server that limits the throughput from the client to the server. */
export type ThrottledProxy = { url: string; close(): Promise<void> };

export async function startThrottledProxy(
  natsUrl: string,
  bytesPerSecond: number,
): Promise<ThrottledProxy> {
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
    void forwardSlowly(client, upstream, bytesPerSecond).catch(() => upstream.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, "close");
    },
  };
}

async function forwardSlowly(from: Socket, to: Socket, bytesPerSecond: number): Promise<void> {
  for await (const bytes of from as AsyncIterable<Buffer>) {
    to.write(bytes);
    await delay((bytes.length / bytesPerSecond) * 1_000);
  }
}
