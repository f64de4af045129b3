import { inboxPrefixOf } from "@halyard/contracts";
import { retry } from "@halyard/timing";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { createConnectionLog } from "./connection-log.ts";
import {
  type ConnectionWatch,
  registerConnectionMetrics,
  watchConnection,
} from "./connection-watch.ts";
import { type NatsServers, serverOptions } from "./nats-servers.ts";

/** Short, because a service that is cut off serves old flags; the jitter spreads a herd. */
const reconnectWaitMs = 250;
const reconnectJitterMs = 250;
const maxWaitMs = reconnectWaitMs + reconnectJitterMs;
const backoff = {
  firstMs: maxWaitMs,
  maxMs: maxWaitMs,
  jitter: reconnectJitterMs / maxWaitMs,
};
/**
 * Time-out of a connection attempt, with its handshake. The client notices a connection that dies during
 * the handshake only by this time-out. Its default of 20 s is longer than every lease.
 */
const connectTimeoutMs = 2_000;
/**
 * How long an answer of JetStream's API is waited for. It comes within milliseconds or, when the
 * stream asked about is just being deleted, never.
 */
export const apiTimeoutMs = 2_000;
/** A dead peer is noticed after two unanswered pings. */
const pingIntervalMs = 5_000;

/** Connects to NATS once, for a command that ends. Throws when no server accepts the connection. */
export async function connectOnce(options: {
  nats: NatsServers;
  name: string;
}): Promise<NatsConnection> {
  return connect({ ...commonOptions(options), reconnect: false });
}

/** `name` also names the private inbox, so a service passes its own. */
const commonOptions = ({ nats, name }: { nats: NatsServers; name: string }) => ({
  ...serverOptions(nats),
  name,
  inboxPrefix: inboxPrefixOf(name),
});

/**
 * Connects to NATS and stays connected. It retries from the first attempt on, for as long as the process
 * lives, so that a service can start while NATS is unavailable. The promise resolves with the first connection.
 */
export async function connectNats(options: {
  nats: NatsServers;
  name: string;
  metrics?: Registry;
  /** Receives the reason of each failed attempt to connect; undefined when the connection is up. */
  onProblem?: (reason: string | undefined) => void;
  logger: Logger;
}): Promise<NatsConnection> {
  const { metrics, logger, onProblem = () => undefined } = options;
  let watch: ConnectionWatch | undefined;
  if (metrics !== undefined) registerConnectionMetrics(metrics, () => watch);
  const log = createConnectionLog({ logger, onProblem, monotonicMs: () => performance.now() });
  const connectToAny = () =>
    connect({
      ...commonOptions(options),
      timeout: connectTimeoutMs,
      noAsyncTraces: true,
      maxReconnectAttempts: -1,
      reconnectTimeWait: reconnectWaitMs,
      reconnectJitter: reconnectJitterMs,
      pingInterval: pingIntervalMs,
      maxPingOut: 2,
      ignoreAuthErrorAbort: true,
    });
  // The client would retry the first connection silently.
  const connection = await retry(connectToAny, { backoff, onFailure: log.failed });
  watch = watchConnection(connection);
  log.connected(connection);
  return connection;
}
