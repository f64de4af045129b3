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
import { leaveCutOffServer } from "./leave-cut-off-server.ts";
import { type NatsServers, serverOptions } from "./nats-servers.ts";

/** Short, because a disconnected edge serves old flags. The jitter keeps processes from reconnecting together. */
const reconnectWaitMs = 250;
const reconnectJitterMs = 250;
const maxWaitMs = reconnectWaitMs + reconnectJitterMs;
const backoff = {
  firstMs: maxWaitMs,
  maxMs: maxWaitMs,
  jitter: reconnectJitterMs / maxWaitMs,
};
/**
 * Time-out of a connection attempt including its handshake. The client detects a connection that dies during the
 * handshake only by this time-out. Its default of 20 s is longer than every lease.
 */
const connectTimeoutMs = 2_000;
/**
 * Time-out of requests to JetStream's API. A response takes milliseconds. While a stream is being deleted, requests
 * about it get no response.
 */
export const apiTimeoutMs = 2_000;
/** Time-out of a connection that compares another server of a cluster with the present one. */
const scoutTimeoutMs = 1_000;
/** Interval of pings. Two pings without a response end the connection. */
const pingIntervalMs = 5_000;

/** Connects to NATS once, for a short-lived command. Throws if no server accepts the connection. */
export async function connectOnce(options: {
  nats: NatsServers;
  name: string;
}): Promise<NatsConnection> {
  return connect({ ...commonOptions(options), reconnect: false });
}

/** `name` is also part of the inbox prefix, so a service passes its own name. */
const commonOptions = ({ nats, name }: { nats: NatsServers; name: string }) => ({
  ...serverOptions(nats),
  name,
  inboxPrefix: inboxPrefixOf(name),
});

/**
 * Connects to NATS and reconnects after every loss. It also retries the first attempt, so that a service can start
 * while NATS is unavailable. The promise resolves with the first connection.
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
  const connectTo = (server: string) =>
    connect({
      ...commonOptions(options),
      servers: [server],
      reconnect: false,
      timeout: scoutTimeoutMs,
    });
  void leaveCutOffServer(connection, { connectTo, logger });
  return connection;
}
