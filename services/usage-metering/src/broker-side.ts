import { type LastUsed, tellLastUsed } from "@halyard/api-keys";
import {
  apiTimeoutMs,
  connectNats,
  ensureLeases,
  isBrokerAway,
  type NatsServers,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { onceConnected, periodically } from "@halyard/service";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { consumeUsage } from "./counting/consume-usage.ts";
import type { Directory } from "./directory/directory.ts";
import { followDirectory } from "./directory/follow-directory.ts";
import { tellLastSeen } from "./last-seen/tell-last-seen.ts";
import { followOpenStreams, type OpenStreams } from "./open-streams/open-streams.ts";
import { startQuotaPublisher } from "./quota/quota-publisher.ts";
import type { UsageMetrics } from "./usage-metrics.ts";

/**
 * Everything of this process that needs NATS: what edges tell, what they are told of their months, and
 * what it knows of keys, plans, flags and open streams. It comes up when NATS does.
 */
export type BrokerSide = {
  /** Whether the snapshot was read once. */
  knowsSnapshot(): boolean;
  /** Returns whether the directory is current and the snapshot is not being rebuilt. */
  isSettled(): Promise<boolean>;
  details(): { nats: "connected" | "away"; messages: "counted" | "left" };
  stop(): Promise<void>;
};

/** The edges' slots are in a bucket that whoever comes first makes. */
const makeSureEveryMs = 1_000;

export function startBrokerSide(options: {
  nats: NatsServers;
  replicas: number;
  sql: Sql;
  directory: Directory;
  openStreams: OpenStreams;
  /** Keys that were used on this service's own routes. */
  lastUsed: LastUsed;
  usageMetrics: UsageMetrics;
  metrics: Registry;
  logger: Logger;
}): BrokerSide {
  const { sql, logger, replicas } = options;
  let knowsSnapshot = false;
  let isCurrent = () => false;
  let isSettled = async () => false;
  let isCounting = () => false;

  const connecting = connectNats({ ...options, name: "usage-metering" });
  const working = onceConnected(connecting, async (connection) => {
    const followed = followDirectory({
      connection,
      directory: options.directory,
      onCurrent() {
        knowsSnapshot = true;
      },
      logger,
    });
    isCurrent = followed.isCurrent;
    isSettled = followed.isSettled;
    const quota = await startQuotaPublisher({ ...options, connection });
    const consumption = consumeUsage({
      ...options,
      connection,
      onCounted: ({ months, now }) => quota.note(months, now),
    });
    isCounting = consumption.isRunning;
    const openStreams = followOpenStreams({ connection, streams: options.openStreams, logger });
    const bucket = await keepLeases({
      connection,
      replicas,
      isThere: openStreams.isCurrent,
      logger,
    });
    const client = jetstream(connection, { timeout: apiTimeoutMs });
    const lastSeen = tellLastSeen({ sql, client, canSend: followed.isCurrent, logger });
    const lastUsed = tellLastUsed({
      client,
      lastUsed: options.lastUsed,
      monotonicMs: () => performance.now(),
      logger,
    });
    const told = [lastSeen.stop, lastUsed.stop];
    return [...told, followed.stop, quota.stop, openStreams.stop, bucket.stop, consumption.stop];
  });

  return {
    knowsSnapshot: () => knowsSnapshot,
    isSettled: () => isSettled(),
    details: () => ({
      nats: isCurrent() ? "connected" : "away",
      messages: isCounting() ? "counted" : "left",
    }),
    stop: working.stop,
  };
}

/** Makes the bucket of the edges' slots whenever it is not there. */
async function keepLeases(options: {
  connection: NatsConnection;
  replicas: number;
  isThere: () => boolean;
  logger: Logger;
}): Promise<{ stop(): Promise<void> }> {
  const { connection, logger } = options;
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  return periodically(
    makeSureEveryMs,
    async () => {
      if (!options.isThere()) await ensureLeases(manager, options.replicas);
    },
    {
      isExpected: isBrokerAway,
      onFailure: (err) => logger.warn({ err }, "the bucket of slots for streams is not there yet"),
    },
  );
}
