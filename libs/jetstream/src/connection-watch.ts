import { EventEmitter, once } from "node:events";
import type { NatsConnection } from "@nats-io/transport-node";

/**
 * Whether the connection to NATS stands. What is published while it does not is lost without a word,
 * so whoever has something to say waits for it.
 */
export type ConnectionWatch = {
  isConnected(): boolean;
  /** Waits for the connection to stand; false when the waiting was called off, or it was closed. */
  connected(calledOff: AbortSignal): Promise<boolean>;
  stop(): void;
};

/** `onLoss` is called each time that the connection is lost. */
export function watchConnection(connection: NatsConnection, onLoss: () => void): ConnectionWatch {
  const statuses = connection.status()[Symbol.asyncIterator]();
  // Each message in work may be waiting.
  const changes = new EventEmitter().setMaxListeners(Number.POSITIVE_INFINITY);
  // Between connections there is no server to know of.
  let isAway = connection.info === undefined;

  async function listen(): Promise<void> {
    for (let next = await statuses.next(); !next.done; next = await statuses.next()) {
      if (next.value.type === "disconnect") {
        isAway = true;
        onLoss();
      } else if (next.value.type === "reconnect") {
        isAway = false;
        changes.emit("change");
      }
    }
    // Nothing comes any more: the connection was closed, or nobody wants to know.
    changes.emit("change");
  }

  const isConnected = () => !isAway && !connection.isClosed();
  void listen();
  return {
    isConnected,
    async connected(calledOff) {
      if (!isConnected() && !connection.isClosed())
        // The one error of this waiting is that it was called off.
        await once(changes, "change", { signal: calledOff }).catch(() => undefined);
      return isConnected();
    },
    stop: () => void statuses.return?.(),
  };
}
