import {
  AckPolicy,
  type Consumer,
  type ConsumerMessages,
  DeliverPolicy,
  type JetStreamClient,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";

/** How many messages may be in work in all replicas together. */
const maxAckPending = 1_000;

/**
 * Opens the durable consumer that all replicas share, and creates it if it does not exist.
 *
 * A crash can lose the end of the stream and keep the consumer's position behind it. nats-server 2.9 then
 * delivers nothing of what is published up to that position. Such a consumer is replaced by one that begins
 * with the first message.
 */
export async function openConsumer(
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
export function askForMessages(consumer: Consumer, atMost: number): Promise<ConsumerMessages> {
  return consumer.fetch({
    max_messages: atMost,
    expires: askForMs,
    idle_heartbeat: heartbeatMs,
  });
}
