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

/** Makes the durable consumer that all replicas share, unless it is there. */
export async function openConsumer(
  client: JetStreamClient,
  manager: JetStreamManager,
  options: { stream: string; consumer: string; subject: string; ackWaitMs: number },
): Promise<Consumer> {
  const info = await manager.consumers.add(options.stream, {
    durable_name: options.consumer,
    filter_subject: options.subject,
    deliver_policy: DeliverPolicy.All,
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(options.ackWaitMs),
    max_ack_pending: maxAckPending,
  });
  return client.consumers.getConsumerFromInfo(info);
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
