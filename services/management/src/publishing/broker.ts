import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

/** The JetStream connection of the relay. */
export type Broker = {
  connection: NatsConnection;
  client: JetStreamClient;
  manager: JetStreamManager;
  /** Number of replicas of each stream: 1, or 3 in a cluster. */
  replicas: number;
  /** Maximum size of the event log, if it is not the default. */
  flagEventsMaxBytes?: number | undefined;
  logger: Logger;
};

/**
 * The position of a stream is not the recorded one. The relay must synchronize the stream before it publishes again.
 */
export class StreamMovedError extends Error {
  override name = "StreamMovedError";
  readonly hasSafeMessage = true;
}
