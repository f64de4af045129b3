import { checkEdgeReport, edgeReports } from "@halyard/contracts";
import { parseJson, watchConnection } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { type LiveEdges, tickMs } from "./live-edges.ts";

export type FollowedEdges = {
  /** True while NATS is connected and reports can arrive. */
  isConnected(): boolean;
  stop(): void;
};

/** Subscribes to the reports of edges until it is stopped. */
export function followEdges(options: {
  connection: NatsConnection;
  edges: LiveEdges;
  /** Called when the connection to NATS is lost. */
  onLoss: () => void;
  logger: Logger;
}): FollowedEdges {
  const { connection, edges, logger } = options;
  const watch = watchConnection(connection);
  const stopListening = watch.onLoss(() => {
    edges.interrupted();
    options.onLoss();
  });
  const subscription = connection.subscribe(edgeReports.subject, {
    callback: (error, message) => {
      const checked = checkEdgeReport(error === null ? parseJson(message.data) : undefined);
      if (checked.ok) edges.take(checked.value);
      else logger.warn({ problem: checked.problem }, "ignored an invalid report of an edge");
    },
  });
  const ticking = setInterval(() => {
    if (watch.isConnected()) edges.tick();
  }, tickMs).unref();
  return {
    isConnected: watch.isConnected,
    stop() {
      clearInterval(ticking);
      subscription.unsubscribe();
      stopListening();
    },
  };
}
