import { connectNats, type NatsServers, trackProblem } from "@halyard/jetstream";
import { reportStatus } from "@halyard/reports";
import type { Logger } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";

/**
 * The connection of an edge to NATS. The edge serves without it, so it may be established long after the start, or
 * never. Each component that needs it awaits `ready`.
 */
export type EdgeConnection = {
  ready: Promise<NatsConnection>;
  /** The reason why the last attempt to connect failed; undefined while it is connected. */
  problem(): string | undefined;
  /** Closes the connection. One that is established later closes immediately. */
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
    reportStatus(established, "sdk-edge");
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
