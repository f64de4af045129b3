import { setTimeout as delay } from "node:timers/promises";
import {
  AckPolicy,
  type Consumer,
  type ConsumerMessages,
  DeliverPolicy,
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import { type NatsConnection, nanos } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { repeatAttempts } from "./attempts.ts";
import { apiTimeoutMs } from "./connect.ts";
import { watchConnection } from "./connection-watch.ts";
import { createMessagesInWork } from "./messages-in-work.ts";
import { processMessage, type QueueMessage, type Verdict } from "./process-message.ts";
import type { QueueMetrics } from "./queue-metrics.ts";

/**
 * Consumes a work queue: a stream whose messages stay until somebody has taken care of them. All
 * replicas of a service share one durable consumer, from which each asks for as many messages as it
 * has free slots, so that none hoards what another could do.
 *
 * There is one way in: make sure of the consumer, then ask for messages a second at a time.
 * Whatever is out of the ordinary (a lost connection, a deleted stream or consumer, silence) ends the
 * asking with a reason, and it begins anew, for as long as the process wants. What is in work goes on
 * meanwhile.
 *
 * A message is acknowledged after the work, and the acknowledgement is not confirmed: if it gets lost
 * the message comes again, as it does after a crash between the two, which no confirmation prevents.
 * So whoever handles messages has to bear repetitions anyhow.
 */
export type Consumption = {
  /** Lets what is in work come to its end, for a few seconds, and gives the rest to other replicas. */
  stop(): Promise<void>;
  /** True while messages can come, as far as one can know. */
  isRunning(): boolean;
};

export type ConsumptionOptions = {
  connection: NatsConnection;
  /** Created by management. Until it exists, consuming is retried. */
  stream: string;
  /** The durable consumer's name; it is made unless it is there. */
  consumer: string;
  subject: string;
  /** How many messages are processed at the same time. */
  concurrency: number;
  handle(message: QueueMessage): Promise<Verdict>;
  /** Whether an error of `handle` is an outage, to be waited for, or the message's own fault. */
  isOutage(error: unknown): boolean;
  /**
   * Called when a message has failed five times by its own fault, before it is set aside. It may be
   * called again for the same message, like `handle`, and its outages are waited for too.
   */
  onRetriesExhausted?(message: QueueMessage, error: unknown): Promise<void>;
  metrics: QueueMetrics;
  logger: Logger;
  /** What a replica that died had in work goes to another after this time. */
  ackWaitMs?: number;
};

const defaultAckWaitMs = 5_000;
/** How long to wait before the next try while the queue cannot be reached. */
const retryDelayMs = 250;
/** Stopping waits this long for a broker that does not answer; its messages come again by themselves. */
const farewell = () => delay(2_000, undefined, { ref: false });

export function consumeQueue(options: ConsumptionOptions): Consumption {
  const { connection, stream, ackWaitMs = defaultAckWaitMs } = options;
  const logger = options.logger.child({ queue: options.subject });
  const stopping = new AbortController();
  const client = jetstream(connection, { timeout: apiTimeoutMs });
  const managing = jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  let asking: ConsumerMessages | undefined;
  let isRunning = false;
  let streamCreatedAt = "";

  const watch = watchConnection(connection);
  const stopListening = watch.onLoss(() => {
    isRunning = false;
    void asking?.close();
  });
  const processing = { ...options, logger, client, watch };
  const inWork = createMessagesInWork({
    concurrency: options.concurrency,
    workingIntervalMs: ackWaitMs / 3,
    isConnected: watch.isConnected,
    process: (message) => processMessage({ ...processing, streamCreatedAt }, message),
  });

  /** Consumes until something is out of the ordinary, and returns what it was. */
  async function consumeOnce(): Promise<string> {
    const manager = await managing;
    // Requests to a disconnected broker are lost, and their time-outs can outlast the outage.
    if (!(await watch.connected(stopping.signal))) return "not connected to NATS";
    // The consumer comes first: it ends with its stream, so no message can belong to an earlier stream.
    const consumer = await openConsumer(client, manager, { ...options, ackWaitMs });
    const { created } = await manager.streams.info(stream);
    if (created !== streamCreatedAt) inWork.abandonAll();
    streamCreatedAt = created;
    isRunning = watch.isConnected();
    attempts.works();
    logger.info("consuming the queue");
    for (;;) {
      await inWork.slotIsFree();
      if (stopping.signal.aborted) return "stopped";
      if (!isRunning) return "the connection to NATS was lost";
      asking = await askForMessages(consumer, inWork.freeSlots());
      for await (const delivery of asking) inWork.take(delivery);
    }
  }

  const attempts = repeatAttempts({
    ...{ connection, logger, signal: stopping.signal },
    attempt: () =>
      consumeOnce().finally(() => {
        isRunning = false;
      }),
    delayMs: () => retryDelayMs,
    interrupted: "consuming the queue was interrupted",
  });
  return {
    isRunning: () => isRunning,
    async stop() {
      stopping.abort();
      inWork.cancel();
      await Promise.race([attempts.ended, farewell()]);
      await inWork.finish();
      // The broker has to have heard what was said before the connection is closed. If it is lost just
      // now, the messages come again by themselves.
      const flushed = watch.isConnected() ? connection.flush().catch(() => undefined) : undefined;
      await Promise.race([flushed, farewell()]);
      stopListening();
    },
  };
}

/** How many messages may be in work in all replicas together. */
const maxAckPending = 1_000;

/**
 * Opens the durable consumer that all replicas share, and creates it if it does not exist.
 *
 * A crash can lose the end of the stream and keep the consumer's position behind it. nats-server 2.9 then
 * delivers nothing of what is published up to that position. Such a consumer is replaced by one that begins
 * with the first message.
 */
async function openConsumer(
  client: JetStreamClient,
  manager: JetStreamManager,
  options: { stream: string; consumer: string; subject: string; ackWaitMs: number },
): Promise<Consumer> {
  const add = () =>
    manager.consumers.add(options.stream, {
      durable_name: options.consumer,
      filter_subject: options.subject,
      deliver_policy: DeliverPolicy.All,
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(options.ackWaitMs),
      max_ack_pending: maxAckPending,
    });
  const found = await add();
  // In this order: the consumer delivers nothing that the stream did not have before.
  const { state } = await manager.streams.info(options.stream);
  if (found.delivered.stream_seq <= state.last_seq)
    return client.consumers.getConsumerFromInfo(found);
  await manager.consumers.delete(options.stream, options.consumer);
  return client.consumers.getConsumerFromInfo(await add());
}

/** An asking lasts this long, and so does stopping; the client library takes nothing shorter. */
const askForMs = 1_000;
/** The broker says that it lives this often while it has no message; two missed end the asking. */
const heartbeatMs = 500;

/** Asks for messages: so many at most, as they come, for a second. */
function askForMessages(consumer: Consumer, atMost: number): Promise<ConsumerMessages> {
  return consumer.fetch({
    max_messages: atMost,
    expires: askForMs,
    idle_heartbeat: heartbeatMs,
  });
}
