import { connectNats, type NatsServers } from "@halyard/jetstream";
import type { Logger } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";

/**
 * The one connection to NATS of an edge. It may stand long after the start, or never: an edge serves
 * without it, so whoever needs it waits for `ready` on its own.
 */
export type EdgeConnection = {
  ready: Promise<NatsConnection>;
  /** Closes it, at once where it stands, else as soon as it would. */
  close(): Promise<void>;
};

export function openNatsConnection(options: {
  nats: NatsServers;
  metrics: Registry;
  logger: Logger;
}): EdgeConnection {
  const ready = connectNats({ ...options, name: "sdk-edge" });
  let connection: NatsConnection | undefined;
  void ready.then((established) => {
    connection = established;
  });
  return {
    ready,
    async close() {
      if (connection === undefined) void ready.then((late) => late.close());
      else await connection.close();
    },
  };
}
