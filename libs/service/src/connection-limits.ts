import type { Server } from "node:http";
import type { Socket } from "node:net";
import { addressBlock } from "@halyard/rate-limit";
import { Counter, type Registry } from "prom-client";
import { createTrustedPeers } from "./trusted-peers.ts";

/**
 * Bounds the connections of clients, in total and for each address. At a bound, a new connection is closed. At that of the
 * total, so are all idle ones, to make room for the next. Trusted proxies carry the connections of many clients, so the bound for each address
 * does not apply to them.
 */
type ConnectionLimits = {
  MAX_CONNECTIONS: number;
  MAX_CONNECTIONS_PER_ADDRESS: number;
  TRUSTED_PROXIES: readonly string[];
};

export function limitConnections(
  server: Server,
  limits: ConnectionLimits,
  registry: Registry,
): void {
  const rejected = new Counter({
    name: "halyard_connections_rejected_total",
    help: "Connections of clients that were closed at a limit.",
    labelNames: ["limit"],
    registers: [registry],
  });
  const isTrusted = createTrustedPeers(limits.TRUSTED_PROXIES);
  const openBy = new Map<string, number>();
  let open = 0;

  /** Returns the limit that a new connection exceeds. */
  function exceededBy(address: string, peer: string): string | undefined {
    const ofAddress = openBy.get(address) ?? 0;
    if (ofAddress >= limits.MAX_CONNECTIONS_PER_ADDRESS && !isTrusted(peer)) return "address";
    return open >= limits.MAX_CONNECTIONS ? "total" : undefined;
  }

  server.on("connection", (socket: Socket) => {
    const peer = socket.remoteAddress ?? "";
    const address = addressBlock(peer);
    const exceeded = exceededBy(address, peer);
    if (exceeded !== undefined) {
      // Makes room for the next connection.
      if (exceeded === "total") server.closeIdleConnections();
      socket.destroy();
      rejected.inc({ limit: exceeded });
      return;
    }
    open += 1;
    openBy.set(address, (openBy.get(address) ?? 0) + 1);
    socket.once("close", () => {
      open -= 1;
      const left = (openBy.get(address) ?? 0) - 1;
      if (left > 0) openBy.set(address, left);
      else openBy.delete(address);
    });
  });
}
