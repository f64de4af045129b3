import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

/** What the relay needs of JetStream. */
export type Broker = {
  connection: NatsConnection;
  client: JetStreamClient;
  manager: JetStreamManager;
  /** How many servers keep each stream: 1, or 3 in a cluster. */
  replicas: number;
  /** Bound of the log of events, if it is not the default. */
  flagEventsMaxBytes?: number | undefined;
  logger: Logger;
};

/** A stream does not stand where we left it, so it has to be looked at again before we go on. */
export class StreamMovedError extends Error {
  override name = "StreamMovedError";
  readonly hasSafeMessage = true;
}
