import { type EdgeReport, edgeReports } from "@halyard/contracts";
import type { NatsConnection } from "@nats-io/transport-node";
import type { SnapshotHolder } from "./snapshot-holder.ts";

/**
 * Reports on core NATS the revision of the snapshot that this edge serves. Management delays the response to a write
 * until every live edge has applied it, at most 500 ms. An idle edge reports at an interval, to show that it is alive. An
 * edge that does not follow the snapshot sends no reports, and writes soon stop waiting for it.
 */
export type AppliedReports = {
  /** Resolves when the NATS server has the announcement of this edge, or the connection is lost. */
  startReported: Promise<void>;
  /** Reports that this edge has stopped serving. */
  stop(): void;
};

export function reportApplied(options: {
  connection: Pick<NatsConnection, "publish" | "flush" | "isClosed">;
  /** Identifies this process. */
  edge: string;
  holder: Pick<SnapshotHolder, "applied" | "onApplied">;
  isCurrent: () => boolean;
}): AppliedReports {
  const { connection, edge, holder } = options;
  let sentAtMs = Number.NEGATIVE_INFINITY;
  let delayed: NodeJS.Timeout | undefined;

  function publish(report: EdgeReport): void {
    if (!connection.isClosed()) connection.publish(edgeReports.subject, JSON.stringify(report));
  }

  function report(): void {
    clearTimeout(delayed);
    delayed = undefined;
    const { applied } = holder;
    if (applied === undefined || !options.isCurrent()) return;
    sentAtMs = performance.now();
    publish({ state: "current", edge, ...applied });
  }

  publish({ state: "starting", edge });
  // A flush fails when the connection is lost. Management then does not know this edge until its first report.
  const startReported = connection.flush().catch(() => undefined);
  holder.onApplied(() => {
    if (delayed !== undefined) return;
    const waitMs = sentAtMs + edgeReports.minIntervalMs - performance.now();
    if (waitMs <= 0) report();
    else delayed = setTimeout(report, waitMs).unref();
  });
  const repeating = setInterval(report, edgeReports.intervalMs).unref();

  return {
    startReported,
    stop() {
      clearInterval(repeating);
      clearTimeout(delayed);
      holder.onApplied(() => {});
      publish({ state: "stopped", edge });
    },
  };
}
