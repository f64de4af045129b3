import { checkEdgeReport, edgeReports } from "@halyard/contracts";
import { type FollowedReports, followReports } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { type LiveEdges, tickMs } from "./live-edges.ts";

/** Passes the reports of edges to the live edges until it is stopped. */
export function followEdges(options: {
  connection: NatsConnection;
  edges: LiveEdges;
  /** Called when the connection to NATS is lost. */
  onLoss: () => void;
  logger: Logger;
}): FollowedReports {
  const { connection, edges, logger } = options;
  return followReports({
    ...{ connection, subject: edgeReports.subject, maxBytes: edgeReports.maxBytes, logger },
    ...{ check: checkEdgeReport, onReport: edges.take, tickMs, onTick: edges.tick },
    onLoss() {
      edges.interrupted();
      options.onLoss();
    },
  });
}
