import {
  AckPolicy,
  type ConsumerInfo,
  DeliverPolicy,
  type JetStreamManager,
} from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection, nanos, nuid } from "@nats-io/transport-node";

/**
 * Reads a stream as it is and goes on with what comes: an ephemeral push consumer of our own, flow
 * controlled, without acknowledgements. It never mends itself. Whatever is out of the ordinary (a
 * missing message, a missed heartbeat, a lost connection, a deleted stream) ends the reading with a
 * reason, and the reader starts again from the beginning. So there is one path for the first start,
 * for a gap and for a recovery, and a stream that was deleted and made anew cannot be mistaken for
 * the old one.
 */
export type StreamMessage = {
  subject: string;
  sequence: number;
  payload: Uint8Array;
  messageId: string | undefined;
};

export type Reading = {
  /** Resolves when everything that the stream held at the start has been delivered. */
  caughtUp: Promise<void>;
  /** Resolves with the reason when the reading has ended, by fault or by `stop`. */
  ended: Promise<string>;
  stop(reason: string): void;
};

/** The broker says that it lives this often; twice as long without a word ends the reading. */
const heartbeatMs = 1_000;
const silenceMs = 2 * heartbeatMs + 500;
/** The broker forgets a consumer that nobody has listened to for this long. */
const consumerLifetimeMs = 30_000;

type ReadOptions = {
  connection: NatsConnection;
  manager: JetStreamManager;
  stream: string;
  /** One filter: servers before 2.10 take no list. */
  filter: string;
  /** All newest values, one a subject, or everything from a sequence on. */
  from: "last-per-subject" | { sequence: number };
  onMessage(message: StreamMessage): void;
};

export async function readStream(options: ReadOptions): Promise<Reading> {
  const { connection, manager, stream } = options;
  const caughtUp = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const inbox = createInbox();
  const name = `halyard_${nuid.next()}`;
  let isCaughtUp = false;
  let expectedDelivery = 1;
  let lastHeard = performance.now();

  const subscription = connection.subscribe(inbox, {
    callback: (error, message) => {
      if (error !== null) {
        end(error.message);
        return;
      }
      lastHeard = performance.now();
      if (message.headers !== undefined && message.headers.code !== 0) {
        onStatus(message);
        return;
      }
      const { sequence, delivery, pending } = positionIn(message);
      if (delivery !== expectedDelivery) {
        end("a message was missed");
        return;
      }
      expectedDelivery += 1;
      options.onMessage({
        subject: message.subject,
        sequence,
        payload: message.data,
        messageId: message.headers?.get("Nats-Msg-Id") || undefined,
      });
      if (pending === 0) finishCatchingUp();
    },
  });
  const watchdog = setInterval(() => {
    if (performance.now() - lastHeard > silenceMs) end("no heartbeat from the broker");
  }, heartbeatMs);

  function onStatus(message: Msg): void {
    const headers = message.headers;
    const stalled = headers?.get("Nats-Consumer-Stalled");
    if (stalled) connection.publish(stalled);
    if (headers?.code !== 100) {
      end(headers?.description ?? "the consumer is gone");
    } else if (message.reply) {
      // Flow control: the broker goes on when we say that everything so far has been taken.
      message.respond();
    } else {
      const delivered = Number(headers.get("Nats-Last-Consumer") || "0");
      if (delivered !== expectedDelivery - 1) end("a message was missed");
      else if (!isCaughtUp) void lookWhetherCaughtUp();
    }
  }

  /**
   * The delivery that would say "none after this" never comes when the last messages were removed from
   * the stream meanwhile; then the broker falls silent, and is asked.
   */
  async function lookWhetherCaughtUp(): Promise<void> {
    try {
      const { num_pending, delivered } = await manager.consumers.info(stream, name);
      if (num_pending === 0 && delivered.consumer_seq === expectedDelivery - 1) finishCatchingUp();
    } catch (error) {
      end(error instanceof Error ? error.message : "the consumer gives no answer");
    }
  }

  function finishCatchingUp(): void {
    isCaughtUp = true;
    caughtUp.resolve();
  }

  function end(reason: string): void {
    clearInterval(watchdog);
    subscription.unsubscribe();
    ended.resolve(reason);
  }

  try {
    const consumer = await addConsumer(options, { name, deliver_subject: inbox });
    if (consumer.num_pending === 0 && consumer.delivered.consumer_seq === 0) finishCatchingUp();
  } catch (error) {
    end("the consumer could not be made");
    throw error;
  }
  return {
    caughtUp: caughtUp.promise,
    ended: ended.promise,
    stop: end,
  };
}

function addConsumer(
  { manager, stream, filter, from }: ReadOptions,
  identity: { name: string; deliver_subject: string },
): Promise<ConsumerInfo> {
  return manager.consumers.add(stream, {
    ...identity,
    ack_policy: AckPolicy.None,
    max_deliver: 1,
    filter_subject: filter,
    flow_control: true,
    idle_heartbeat: nanos(heartbeatMs),
    inactive_threshold: nanos(consumerLifetimeMs),
    mem_storage: true,
    num_replicas: 1,
    ...(from === "last-per-subject"
      ? { deliver_policy: DeliverPolicy.LastPerSubject }
      : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: from.sequence }),
  });
}

/**
 * A delivery's reply subject says where it stands: `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream
 * sequence>.<consumer sequence>.<time>.<pending>`, in newer servers with domain and account before the
 * stream and a token more at the end.
 */
function positionIn(message: Msg): { sequence: number; delivery: number; pending: number } {
  const tokens = (message.reply ?? "").split(".");
  const first = tokens.length > 9 ? 7 : 5;
  return {
    sequence: Number(tokens[first]),
    delivery: Number(tokens[first + 1]),
    pending: Number(tokens[first + 3]),
  };
}
