import { EventEmitter, once } from "node:events";
import type { NatsConnection } from "@nats-io/transport-node";
import { Counter, Gauge, type Registry } from "prom-client";

/**
 * The state of one connection to NATS, shared by all its users. Messages published while it is disconnected are lost
 * without an error, so publishers wait for the connection.
 *
 * A failed handshake emits another `disconnect`. The next successful one emits a `reconnect` for each `disconnect`
 * before it. The state therefore depends only on the last event, and waiting compares states instead of counting
 * events.
 */
export type ConnectionWatch = {
  isConnected(): boolean;
  /** Waits until the connection is up. Resolves with false if it is closed or the signal is aborted first. */
  connected(signal: AbortSignal): Promise<boolean>;
  /** Calls the listener at each loss of the connection. Returns a function that removes it. */
  onLoss(listener: () => void): () => void;
  /** Followers of streams that use this connection. */
  followers: Set<FollowerState>;
};

/** The state of a follower, for metrics. */
export type FollowerState = {
  stream: string;
  isCurrent(): boolean;
  /** Number of restarts by the watchdog. */
  restarts(): number;
};

const watches = new WeakMap<NatsConnection, ConnectionWatch>();

/** Returns the watch of this connection. The first call creates it. */
export function watchConnection(connection: NatsConnection): ConnectionWatch {
  const known = watches.get(connection);
  if (known !== undefined) return known;
  const watch = createWatch(connection);
  watches.set(connection, watch);
  return watch;
}

function createWatch(connection: NatsConnection): ConnectionWatch {
  // Each message in progress and each follower may wait.
  const changes = new EventEmitter().setMaxListeners(Number.POSITIVE_INFINITY);
  // Until it is connected, the client has no information about a server.
  let isUp = connection.info !== undefined;
  let isOver = false;
  const isConnected = () => isUp && !isOver && !connection.isClosed();

  async function listen(): Promise<void> {
    for await (const { type } of connection.status()) {
      if (type !== "disconnect" && type !== "reconnect") continue;
      isUp = type === "reconnect";
      changes.emit(isUp ? "change" : "loss");
    }
    // The connection is being closed; the client reports that it is closed only later.
    isOver = true;
    changes.emit("change");
  }

  void listen();
  return {
    isConnected,
    async connected(signal) {
      while (!isConnected() && !isOver && !signal.aborted)
        // Rejects only when the signal is aborted.
        await once(changes, "change", { signal }).catch(() => undefined);
      return isConnected();
    },
    onLoss(listener) {
      changes.on("loss", listener);
      return () => changes.off("loss", listener);
    },
    followers: new Set(),
  };
}

/** Registers the metrics of a process's connection to NATS and of its followers. */
export function registerConnectionMetrics(
  registry: Registry,
  watch: () => ConnectionWatch | undefined,
): void {
  const registers = [registry];
  new Gauge({
    name: "halyard_nats_connected",
    help: "1 while this process is connected to NATS.",
    registers,
    collect() {
      this.set(watch()?.isConnected() ? 1 : 0);
    },
  });
  new Gauge({
    name: "halyard_follower_current",
    help: "1 while this process has everything that the stream contains.",
    labelNames: ["stream"],
    registers,
    collect() {
      for (const { stream, isCurrent } of watch()?.followers ?? [])
        this.set({ stream }, isCurrent() ? 1 : 0);
    },
  });
  new Counter({
    name: "halyard_follower_restarts_total",
    help: "Restarts of followers that were not current while NATS was connected.",
    labelNames: ["stream"],
    registers,
    collect() {
      this.reset();
      for (const { stream, restarts } of watch()?.followers ?? []) this.inc({ stream }, restarts());
    },
  });
}
