import { everythingFilter } from "@halyard/contracts";
import { type Consumption, createQueueMetrics } from "@halyard/jetstream";
import { followOpenStreams, type OpenStreams } from "@halyard/reports";
import {
  startWorkers as startSnapshotWorkers,
  type WorkerOptions,
} from "@halyard/server-key-service";
import { consumeReports, consumeUsage } from "./counting/consume-usage.ts";
import type { UsageMetrics } from "./counting/usage-metrics.ts";
import type { Directory } from "./directory/directory.ts";
import { sendLastSeen } from "./last-seen/send-last-seen.ts";
import { startQuotaPublisher } from "./quota/quota-publisher.ts";
import { createRemove } from "./retention/remove-deleted.ts";

/**
 * Starts the background workers of this process, which need NATS. They count the messages of edges and the reports of
 * applications, publish quotas, and follow keys, plans, flags and open streams.
 */
export function startWorkers(
  options: WorkerOptions & {
    directory: Directory;
    openStreams: OpenStreams;
    usageMetrics: UsageMetrics;
    /** Interval at which the whole month is compared with the published quotas. */
    compareIntervalMs?: number | undefined;
  },
) {
  const { sql, logger } = options;
  let usage: Consumption | undefined;
  const workers = startSnapshotWorkers({
    ...options,
    service: "usage-metering",
    filter: everythingFilter,
    remove: createRemove(sql, options.deletions),
    begin(connection, client) {
      const quota = startQuotaPublisher({ ...options, connection });
      const queueMetrics = createQueueMetrics(options.metrics);
      const consuming = { ...options, connection, queueMetrics };
      usage = consumeUsage({
        ...consuming,
        onCounted: ({ months, now }) => quota.note(months, now),
      });
      const reports = consumeReports(consuming);
      const streams = followOpenStreams({ connection, streams: options.openStreams, logger });
      const lastSeen = sendLastSeen({ sql, client, canSend: workers.isCurrent, logger });
      return {
        parts: [options.directory.scopes],
        stops: [
          ...[lastSeen.stop, quota.stop, async () => streams.stop()],
          ...[reports.stop, usage.stop],
        ],
      };
    },
  });
  return {
    ...workers,
    details: () => ({
      ...workers.details(),
      messages: usage?.isRunning() ? "counted" : "left",
    }),
  };
}
