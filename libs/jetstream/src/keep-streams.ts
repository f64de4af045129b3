import { type Interval, startInterval } from "@halyard/timing";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { apiTimeoutMs } from "./connect.ts";
import { watchConnection } from "./connection-watch.ts";
import { ensureStreams, type StreamSettings } from "./streams.ts";

/** Time after which a deleted stream is created again while NATS is connected. */
const pollIntervalMs = 500;

/**
 * Creates missing streams and buckets for as long as the process runs. The other services have no right to create them,
 * and wait until they exist.
 */
export function keepStreams(
  options: { connection: NatsConnection; logger: Logger } & StreamSettings,
): Interval {
  const { connection, logger } = options;
  const watch = watchConnection(connection);
  const managing = jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });

  async function createMissing(): Promise<void> {
    // Requests to a disconnected broker are lost, and their time-outs can outlast the outage.
    if (!watch.isConnected()) return;
    await ensureStreams(await managing, options);
  }

  return startInterval(createMissing, {
    intervalMs: pollIntervalMs,
    beginsAtOnce: true,
    isExpected: () => true,
    onFailure(err, isRepeated) {
      if (!isRepeated) logger.warn({ err }, "streams could not be created; retrying");
    },
  });
}
