import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/**
 * A load balancer for TCP connections, like a Kubernetes Service. Each new connection goes to the next process in
 * service. An open connection stays with its process, even after that process has left.
 */
export type LoadBalancer = { url: string; close(): Promise<void> };

export async function startLoadBalancer(
  inService: () => readonly { url: string }[],
): Promise<LoadBalancer> {
  const open = new Set<Socket>();
  let turn = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const targets = inService();
    turn += 1;
    const target = targets[turn % targets.length];
    if (target === undefined) {
      client.destroy();
      return;
    }
    const { hostname, port } = new URL(target.url);
    const upstream = connect({ host: hostname, port: Number(port), noDelay: true });
    client.pipe(upstream).pipe(client);
    join(client, upstream);
    join(upstream, client);
  });

  /** Destroys one side of a connection when the other side breaks off. */
  function join(socket: Socket, other: Socket): void {
    open.add(socket);
    socket.on("error", () => other.destroy()).on("close", () => open.delete(socket));
  }

  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
