import type { Server } from "node:http";
import type { Socket } from "node:net";
import { addressBlock } from "@halyard/rate-limit";
import type { ConnectionActivity } from "./one-at-a-time.ts";

/**
 * Bounds the connections of clients, in total and for each client address. A new connection beyond a bound replaces the
 * connection that has been idle for longest. If none is idle, the new one is closed. Trusted proxies carry the
 * connections of many clients, so the bound per address does not apply to them.
 */
type ConnectionLimitOptions = {
  max: number;
  maxPerAddress: number;
  isTrustedPeer: (address: string) => boolean;
  rejected: (reason: "connections" | "connections_per_address") => void;
};

export function limitConnections(
  server: Server,
  options: ConnectionLimitOptions,
): ConnectionActivity {
  const open = new Map<Socket, string>();
  const openBy = new Map<string, number>();
  /** Connections without a request in flight, the longest idle one first. */
  const idle = new Set<Socket>();

  function forget(socket: Socket): void {
    const address = open.get(socket);
    if (address === undefined) return;
    open.delete(socket);
    idle.delete(socket);
    const count = (openBy.get(address) ?? 0) - 1;
    if (count === 0) openBy.delete(address);
    else openBy.set(address, count);
  }

  function closeIdle(isEligible: (socket: Socket) => boolean): boolean {
    for (const socket of idle) {
      if (!isEligible(socket)) continue;
      forget(socket);
      socket.destroy();
      return true;
    }
    return false;
  }

  /** Returns the bound that a new connection would exceed, if no idle connection can be closed for it. */
  function exceededBy(address: string, isTrusted: boolean) {
    const isAddressFull = !isTrusted && (openBy.get(address) ?? 0) >= options.maxPerAddress;
    if (isAddressFull && !closeIdle((socket) => open.get(socket) === address))
      return "connections_per_address";
    if (open.size >= options.max && !closeIdle(() => true)) return "connections";
    return undefined;
  }

  server.on("connection", (socket: Socket) => {
    const peer = socket.remoteAddress ?? "";
    const address = addressBlock(peer);
    const exceeded = exceededBy(address, options.isTrustedPeer(peer));
    if (exceeded !== undefined) {
      socket.destroy();
      options.rejected(exceeded);
      return;
    }
    open.set(socket, address);
    openBy.set(address, (openBy.get(address) ?? 0) + 1);
    idle.add(socket);
    socket.once("close", () => forget(socket));
  });

  return {
    busy: (socket) => idle.delete(socket),
    idle: (socket) => open.has(socket) && idle.add(socket),
  };
}
