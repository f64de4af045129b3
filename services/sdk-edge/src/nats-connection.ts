import { connectNats, type NatsServers, trackProblem } from "@halyard/jetstream";
import type { Logger } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";

/**
 * The one connection to NATS of an edge. It may stand long after the start, or never: an edge serves
 * without it, so whoever needs it waits for `ready` on its own.
 */
export type EdgeConnection = {
  ready: Promise<NatsConnection>;
  /** The reason why the last attempt to connect failed; undefined while it is connected. */
  problem(): string | undefined;
  /** Closes it, at once where it stands, else as soon as it would. */
  close(): Promise<void>;
};

export function openNatsConnection(options: {
  nats: NatsServers;
  metrics: Registry;
  logger: Logger;
}): EdgeConnection {
  const { problem, onProblem } = trackProblem();
  const ready = connectNats({ ...options, name: "sdk-edge", onProblem });
  let connection: NatsConnection | undefined;
  void ready.then((established) => {
    connection = established;
  });
  return {
    ready,
    problem,
    async close() {
      if (connection === undefined) void ready.then((late) => late.close());
      else await connection.close();
    },
  };
}
