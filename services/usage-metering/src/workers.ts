import { followDirectory, type LastUsed, sendLastUsed } from "@halyard/api-keys";
import { everythingFilter } from "@halyard/contracts";
import {
  apiTimeoutMs,
  connectNats,
  createQueueMetrics,
  followOpenStreams,
  type NatsServers,
  type OpenStreams,
  trackProblem,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { onceConnected } from "@halyard/service";
import { jetstream } from "@nats-io/jetstream";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { consumeReports, consumeUsage } from "./counting/consume-usage.ts";
import type { UsageMetrics } from "./counting/usage-metrics.ts";
import type { Directory } from "./directory/directory.ts";
import { sendLastSeen } from "./last-seen/send-last-seen.ts";
import { startQuotaPublisher } from "./quota/quota-publisher.ts";

/**
 * The background workers of this process, which need NATS and start when it is available. They count the messages of
 * edges and the reports of applications, publish quotas, and follow keys, plans, flags and open streams.
 */
export type Workers = {
  /** Returns whether the snapshot has been read at least once. */
  snapshotIsLoaded(): boolean;
  /** Returns whether the directory is current and the snapshot is not being rebuilt. */
  isSettled(): Promise<boolean>;
  details(): {
    nats: "connected" | "away";
    nats_problem?: string | undefined;
    messages: "counted" | "left";
  };
  stop(): Promise<void>;
};

export function startWorkers(options: {
  nats: NatsServers;
  sql: Sql;
  directory: Directory;
  openStreams: OpenStreams;
  /** Keys that were used on this service's own routes. */
  lastUsed: LastUsed;
  usageMetrics: UsageMetrics;
  /** Interval at which the whole month is compared with the published quotas. */
  compareIntervalMs?: number | undefined;
  metrics: Registry;
  logger: Logger;
}): Workers {
  const { sql, logger } = options;
  let snapshotIsLoaded = false;
  let isCurrent = () => false;
  let isSettled = async () => false;
  let isCounting = () => false;

  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "usage-metering", onProblem });
  const working = onceConnected(connecting, async (connection) => {
    const followed = followDirectory({
      connection,
      filter: everythingFilter,
      keys: options.directory.keys,
      parts: [options.directory.scopes],
      onCurrent() {
        snapshotIsLoaded = true;
      },
      logger,
    });
    isCurrent = followed.isCurrent;
    isSettled = followed.isSettled;
    const quota = startQuotaPublisher({ ...options, connection });
    const consuming = { ...options, connection, queueMetrics: createQueueMetrics(options.metrics) };
    const usage = consumeUsage({
      ...consuming,
      onCounted: ({ months, now }) => quota.note(months, now),
    });
    const reports = consumeReports(consuming);
    isCounting = usage.isRunning;
    const openStreams = followOpenStreams({ connection, streams: options.openStreams, logger });
    const client = jetstream(connection, { timeout: apiTimeoutMs });
    const lastSeen = sendLastSeen({ sql, client, canSend: followed.isCurrent, logger });
    const lastUsed = sendLastUsed({
      client,
      lastUsed: options.lastUsed,
      monotonicMs: () => performance.now(),
      logger,
    });
    const senders = [lastSeen.stop, lastUsed.stop];
    const counting = [reports.stop, usage.stop];
    return [...senders, followed.stop, quota.stop, async () => openStreams.stop(), ...counting];
  });

  return {
    snapshotIsLoaded: () => snapshotIsLoaded,
    isSettled: () => isSettled(),
    details: () => ({
      nats: isCurrent() ? "connected" : "away",
      nats_problem: problem(),
      messages: isCounting() ? "counted" : "left",
    }),
    stop: working.stop,
  };
}
