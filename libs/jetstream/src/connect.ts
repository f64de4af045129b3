import { type ConnectionOptions, connect, type NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { registerConnectionMetrics } from "./connection-metrics.ts";
import { type ConnectionWatch, watchConnection } from "./connection-watch.ts";

/** Short, because a service that is cut off serves old flags; the jitter spreads a herd. */
const reconnectWaitMs = 250;
const reconnectJitterMs = 250;
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

/** The NATS servers and the credentials for them. */
export type NatsServers = {
  /** Addresses such as `nats://host:4222`, separated by commas. */
  url: string;
  user?: string | undefined;
  password?: string | undefined;
  /** Path of a CA certificate. With it, connections require TLS and a certificate that this CA signed. */
  tlsCaFile?: string | undefined;
};

/** The connection options for these servers. They never contain undefined members, which the client rejects. */
function serverOptions(nats: NatsServers): ConnectionOptions {
  return {
    servers: nats.url.split(","),
    ...(nats.user === undefined ? {} : { user: nats.user }),
    ...(nats.password === undefined ? {} : { pass: nats.password }),
    ...(nats.tlsCaFile === undefined ? {} : { tls: { caFile: nats.tlsCaFile } }),
  };
}

/** Connects to NATS once, for a command that ends. Throws when no server accepts the connection. */
export async function connectOnce(options: {
  nats: NatsServers;
  name: string;
}): Promise<NatsConnection> {
  return connect({ ...serverOptions(options.nats), name: options.name, reconnect: false });
}

/**
 * Connects to NATS and stays connected: it goes on trying for as long as the process lives, from the
 * very first attempt, so that a service can start while NATS is away. The promise resolves when the
 * first connection stands.
 */
export async function connectNats(options: {
  nats: NatsServers;
  name: string;
  metrics?: Registry;
  logger: Logger;
}): Promise<NatsConnection> {
  const { nats, name, metrics, logger } = options;
  let watch: ConnectionWatch | undefined;
  if (metrics !== undefined) registerConnectionMetrics(metrics, () => watch);
  const connection = await connect({
    ...serverOptions(nats),
    name,
    timeout: connectTimeoutMs,
    noAsyncTraces: true,
    waitOnFirstConnect: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: reconnectWaitMs,
    reconnectJitter: reconnectJitterMs,
    pingInterval: pingIntervalMs,
    maxPingOut: 2,
    ignoreAuthErrorAbort: true,
  });
  watch = watchConnection(connection);
  void logStatus(connection, logger);
  return connection;
}

async function logStatus(connection: NatsConnection, logger: Logger): Promise<void> {
  for await (const status of connection.status()) {
    if (status.type === "disconnect") logger.warn("NATS is disconnected; reconnecting");
    else if (status.type === "reconnect") logger.info("NATS is connected again");
    else if (status.type === "error") logger.warn({ err: status.error }, "NATS reports an error");
  }
}
