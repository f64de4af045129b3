import { randomUUID } from "node:crypto";
import { deadLetterStream } from "@halyard/contracts";
import { connectNats, createQueueMetrics, type QueueMessage } from "@halyard/jetstream";
import { eventually } from "@halyard/testing";
import {
  AckPolicy,
  type JetStreamClient,
  type JetStreamManager,
  type JsMsg,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { Registry } from "prom-client";
import { type Consumption, type ConsumptionOptions, consumeQueue } from "../src/consume.ts";
import { ensureDeadLetters } from "../src/streams.ts";

export class Outage extends Error {
  override name = "Outage";
}

export type Queue = {
  stream: string;
  subject: string;
  consumer: string;
  create(): Promise<void>;
  publish(payloads: readonly string[]): Promise<void>;
  /** Returns the number of messages in the stream. */
  left(): Promise<number>;
  /** Returns the number of deliveries, including repeated ones. */
  delivered(): Promise<number>;
  /** Returns the number of unacknowledged messages, according to the consumer. */
  waiting(): Promise<number>;
};

type Replica = {
  consumption: Consumption;
  connection: NatsConnection;
  /** The payload of each call of the handler. */
  handled: string[];
  messages: QueueMessage[];
  count(metric: string, labels: Record<string, string>): Promise<number>;
};

type Behavior = Partial<
  Pick<ConsumptionOptions, "handle" | "onRetriesExhausted" | "concurrency" | "ackWaitMs">
>;

export type QueueBench = Awaited<ReturnType<typeof createQueueBench>>;

const logger = pino({ level: "silent" });

/** Creates a bench with separate queues for each test, and replicas that consume them, each with its own connection. */
export async function createQueueBench(url: string) {
  const connection = await connectNats({ nats: { url }, name: "test", logger });
  // A server that is starting does not respond. The time-out is short, because tests retry.
  const manager = await jetstreamManager(connection, { timeout: 2_000 });
  const client = jetstream(connection);
  const replicas: Replica[] = [];
  let isUnavailable = false;
  void (async () => {
    for await (const { type } of connection.status()) {
      if (type === "disconnect") isUnavailable = true;
      else if (type === "reconnect") isUnavailable = false;
    }
  })();

  async function openQueue(): Promise<Queue> {
    const name = randomUUID();
    const queue = createQueue(client, manager, name);
    await eventually(() => queue.create().then(() => true));
    await ensureDeadLetters(manager, 1);
    return queue;
  }

  function consumeOver(over: NatsConnection, queue: Queue, behavior: Behavior = {}): Replica {
    const replica = startReplica(over, queue, behavior);
    replicas.push(replica);
    return replica;
  }

  /** Starts a replica with its own connection, and resolves when it consumes. */
  async function consume(queue: Queue, behavior: Behavior = {}): Promise<Replica> {
    const own = await connectNats({ nats: { url }, name: "replica", logger });
    const replica = consumeOver(own, queue, behavior);
    await eventually(() => replica.consumption.isRunning());
    return replica;
  }

  async function close(): Promise<void> {
    await Promise.all(replicas.map(({ consumption }) => consumption.stop()));
    await Promise.all(replicas.map((replica) => replica.connection.close()));
    await connection.close();
  }

  return {
    connection,
    manager,
    client,
    openQueue,
    consume,
    consumeOver,
    isUnavailable: () => isUnavailable,
    close,
    deadLetter: (queue: Queue) => readDeadLetters(client, queue),
    nextDelivery: (queue: Queue) => nextDelivery(client, manager, queue),
  };
}

function createQueue(client: JetStreamClient, manager: JetStreamManager, name: string): Queue {
  const [stream, subject, consumer] = [`Q-${name}`, `queue.${name}`, "worker"];
  return {
    stream,
    subject,
    consumer,
    async create() {
      const retention = RetentionPolicy.Workqueue;
      await manager.streams.add({ name: stream, subjects: [subject], retention });
    },
    publish: async (payloads) => {
      for (const payload of payloads) await client.publish(subject, payload);
    },
    left: async () => (await manager.streams.info(stream)).state.messages,
    delivered: async () => (await manager.consumers.info(stream, consumer)).delivered.consumer_seq,
    waiting: async () => {
      const info = await manager.consumers.info(stream, consumer);
      return info.num_pending + info.num_ack_pending;
    },
  };
}

function startReplica(connection: NatsConnection, queue: Queue, behavior: Behavior): Replica {
  const { handle = async () => "done", concurrency = 1, ...rest } = behavior;
  const registry = new Registry();
  const handled: string[] = [];
  const messages: QueueMessage[] = [];
  const consumption = consumeQueue({
    connection,
    stream: queue.stream,
    consumer: queue.consumer,
    subject: queue.subject,
    concurrency,
    verify: "unsigned",
    handle: (message) => {
      handled.push(Buffer.from(message.payload).toString());
      messages.push(message);
      return handle(message);
    },
    isOutage: (error) => error instanceof Outage,
    metrics: createQueueMetrics(registry),
    logger,
    ...rest,
  });
  async function count(metric: string, labels: Record<string, string>): Promise<number> {
    const { values = [] } = (await registry.getSingleMetric(metric)?.get()) ?? {};
    const wanted = Object.entries({ queue: queue.subject, ...labels });
    const found = values.find((value) =>
      wanted.every(([name, label]) => value.labels[name] === label),
    );
    return found?.value ?? 0;
  }
  return { consumption, connection, handled, messages, count };
}

/** Returns the dead letters of a queue. */
async function readDeadLetters(client: JetStreamClient, queue: Queue) {
  const manager = await client.jetstreamManager(false);
  const info = await manager.consumers.add(deadLetterStream.name, {
    name: randomUUID(),
    filter_subject: deadLetterStream.subjectPrefix + queue.subject,
    ack_policy: AckPolicy.None,
  });
  const copies: { subject: string; payload: string; headers: Record<string, string> }[] = [];
  if (info.num_pending === 0) return copies;
  const consumer = client.consumers.getConsumerFromInfo(info);
  for await (const message of await consumer.fetch({ max_messages: info.num_pending }))
    copies.push({
      subject: message.subject,
      payload: message.string(),
      headers: Object.fromEntries(
        (message.headers?.keys() ?? []).map((key) => [key, message.headers?.get(key) ?? ""]),
      ),
    });
  return copies;
}

/** Returns the next message of a queue without acknowledging it. */
async function nextDelivery(
  client: JetStreamClient,
  manager: JetStreamManager,
  queue: Queue,
): Promise<JsMsg> {
  const info = await manager.consumers.add(queue.stream, {
    durable_name: queue.consumer,
    ack_policy: AckPolicy.Explicit,
  });
  const message = await client.consumers.getConsumerFromInfo(info).next();
  if (message === null) throw new Error("The queue has no message");
  return message;
}
