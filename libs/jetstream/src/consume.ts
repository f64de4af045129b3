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
import { nanos } from "@nats-io/transport-node";
import { repeatAttempts } from "./attempts.ts";
import { apiTimeoutMs } from "./connect.ts";
import { watchConnection } from "./connection-watch.ts";
import { createMessagesInWork } from "./messages-in-work.ts";
import { createForeignLog, type HandlerOptions, processMessage } from "./process-message.ts";

/**
 * Consumes a work queue: a stream whose messages stay until they are acknowledged. All replicas of a service share one
 * durable consumer. Each replica requests only as many messages as it has free slots, so that no replica holds messages
 * that another could process.
 *
 * An attempt opens the consumer and then requests messages, for a second at a time. Any irregularity (a lost
 * connection, a deleted stream or consumer, missing heartbeats) ends the attempt with a reason, and another attempt
 * begins. Messages in progress are not affected.
 *
 * A message is acknowledged after it was processed. The broker does not confirm the acknowledgement: if it is lost, the
 * message is delivered again. A crash before the acknowledgement has the same effect, so handlers must be idempotent
 * anyway.
 */
export type Consumption = {
  /** Waits a few seconds for messages in progress, and releases the rest to other replicas. */
  stop(): Promise<void>;
  /** Returns whether messages can arrive, as far as this process can detect. */
  isRunning(): boolean;
};

export type ConsumptionOptions = HandlerOptions & {
  /** Created by management. Until it exists, consuming is retried. */
  stream: string;
  /** Name of the durable consumer, which is created if it does not exist. */
  consumer: string;
  /** Maximum number of messages processed at the same time. */
  concurrency: number;
  /** Time after which the messages of a crashed replica are delivered to another one. */
  ackWaitMs?: number;
};

const defaultAckWaitMs = 5_000;
/** Delay before the next attempt while the queue is unavailable. */
const retryDelayMs = 250;
/** Bounds the time of stopping while the broker does not respond. The broker delivers the messages again later. */
const farewell = () => delay(2_000, undefined, { ref: false });

export function consumeQueue(options: ConsumptionOptions): Consumption {
  const { connection, stream, ackWaitMs = defaultAckWaitMs } = options;
  const logger = options.logger.child({ queue: options.subject });
  const stopping = new AbortController();
  const client = jetstream(connection, { timeout: apiTimeoutMs });
  const managing = jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  let fetching: ConsumerMessages | undefined;
  let isRunning = false;
  let streamCreatedAt = "";

  const watch = watchConnection(connection);
  const stopListening = watch.onLoss(() => {
    isRunning = false;
    void fetching?.close();
  });
  const processing = { ...options, logger, client, watch, logForeign: createForeignLog(logger) };
  const inWork = createMessagesInWork({
    concurrency: options.concurrency,
    workingIntervalMs: ackWaitMs / 3,
    isConnected: watch.isConnected,
    process: (message) => processMessage({ ...processing, streamCreatedAt }, message),
  });

  /** Consumes until an irregularity, and returns its reason. */
  async function consumeOnce(): Promise<string> {
    const manager = await managing;
    // Requests to a disconnected broker are lost, and their time-outs can outlast the outage.
    if (!(await watch.connected(stopping.signal))) return "not connected to NATS";
    // The consumer is opened first. It ends with its stream, so no message can belong to an earlier stream.
    const consumer = await openConsumer(client, manager, { ...options, ackWaitMs });
    const { created } = await manager.streams.info(stream);
    if (created !== streamCreatedAt) inWork.abandonAll();
    streamCreatedAt = created;
    isRunning = watch.isConnected();
    attempts.works();
    logger.info("consuming the queue");
    for (;;) {
      await inWork.slotIsFree(stopping.signal);
      if (stopping.signal.aborted) return "stopped";
      if (!isRunning) return "the connection to NATS was lost";
      fetching = await fetchMessages(consumer, inWork.freeSlots());
      for await (const delivery of fetching) inWork.take(delivery);
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
      await Promise.race([attempts.ended, farewell()]);
      await inWork.stop();
      // The broker must receive the acknowledgements before the connection is closed. If the connection is lost now,
      // the broker delivers the messages again.
      const flushed = watch.isConnected() ? connection.flush().catch(() => undefined) : undefined;
      await Promise.race([flushed, farewell()]);
      stopListening();
    },
  };
}

/** Maximum number of unacknowledged messages in all replicas together. */
const maxAckPending = 1_000;

/**
 * Opens the durable consumer that all replicas share, and creates it if it does not exist.
 *
 * A crash can lose the end of the stream but keep the consumer's position beyond it. nats-server 2.9 then does not
 * deliver messages that are published up to that position. Such a consumer is replaced by one that begins with the
 * first message.
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
  // The stream is read after the consumer, so a valid position of the consumer is never above its last sequence.
  const { state } = await manager.streams.info(options.stream);
  if (found.delivered.stream_seq <= state.last_seq)
    return client.consumers.getConsumerFromInfo(found);
  await manager.consumers.delete(options.stream, options.consumer);
  return client.consumers.getConsumerFromInfo(await add());
}

/** Duration of a request for messages, which bounds the time of stopping. The client library's minimum. */
const fetchMs = 1_000;
/** Interval of the broker's heartbeats while it has no message. Two missed ones end the request. */
const heartbeatMs = 500;

/** Requests messages, up to a maximum number, as they arrive within a second. */
function fetchMessages(consumer: Consumer, maxMessages: number): Promise<ConsumerMessages> {
  return consumer.fetch({
    max_messages: maxMessages,
    expires: fetchMs,
    idle_heartbeat: heartbeatMs,
  });
}
