import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DeliverPolicy,
  type JetStreamManager,
  jetstreamManager,
} from "@nats-io/jetstream";
import { createInbox, type Msg, type NatsConnection, nanos, nuid } from "@nats-io/transport-node";
import { progressOfAll, progressOfSome } from "./catch-up.ts";
import { failureName, knownText } from "./failures.ts";

/**
 * Reads a stream from a sequence on and continues with new messages: an ephemeral push consumer of our own,
 * flow controlled, without acknowledgements. It never repairs itself. Any irregularity (a missing message, a
 * missed heartbeat, a lost connection, a deleted stream) ends the reading with a reason, and the caller
 * starts another one.
 *
 * A bucket with a history of one is read from its first sequence. That delivers the newest value of each
 * key, and creating such a consumer does not require the broker to look at every subject, which
 * `last_per_subject` does while it blocks all writes.
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

/** Interval of the broker's heartbeats. Twice as long without a message ends the reading. */
const heartbeatMs = 1_000;
const silenceMs = 2 * heartbeatMs + 500;
/** The broker deletes a consumer without a subscriber after this time. */
const consumerLifetimeMs = 30_000;
/**
 * Time-out of creating a consumer. A busy broker with hundreds of thousands of subjects needs seconds, and an
 * attempt that is given up early is work that the broker does again.
 */
const creationTimeoutMs = 10_000;

/** The broker delivers only to subjects that this connection may subscribe to. */
function inboxPrefixIn(connection: NatsConnection): string | undefined {
  // The client's interface does not contain the options.
  return (connection as { options?: { inboxPrefix?: string } }).options?.inboxPrefix;
}

type ReadOptions = {
  connection: NatsConnection;
  manager: JetStreamManager;
  stream: string;
  /** One filter of subjects, because servers before 2.10 take no list; undefined for the whole stream. */
  filter: string | undefined;
  /** First sequence to read. */
  from: number;
  /** The last sequence of the stream, looked up before. */
  lastSequence: number;
  onMessage(message: StreamMessage): void;
};

export async function readStream(options: ReadOptions): Promise<Reading> {
  const { connection, manager, stream, filter } = options;
  const caughtUp = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const inbox = createInbox(inboxPrefixIn(connection));
  const name = `halyard_${nuid.next()}`;
  let isCaughtUp = false;
  let hasEnded = false;
  let expectedDelivery = 1;
  let lastHeard = performance.now();
  let watchdog: NodeJS.Timeout | undefined;
  const progress = (filter === undefined ? progressOfAll : progressOfSome)({
    ...options,
    consumer: name,
    received: () => expectedDelivery - 1,
    onCaughtUp() {
      isCaughtUp = true;
      caughtUp.resolve();
    },
    onFailure: end,
  });

  const subscription = connection.subscribe(inbox, {
    callback: (error, message) => {
      if (error !== null) {
        end(failureName(error));
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
      if (!isCaughtUp) progress.delivered({ sequence, pending });
    },
  });

  function onStatus(message: Msg): void {
    const headers = message.headers;
    const stalled = headers?.get("Nats-Consumer-Stalled");
    if (stalled) connection.publish(stalled);
    if (headers?.code !== 100) {
      end(knownText(headers?.description ?? "") ?? `the broker sent status ${headers?.code}`);
    } else if (message.reply) {
      // Flow control: the broker continues when it is confirmed that everything so far has arrived.
      message.respond();
    } else {
      const delivered = Number(headers.get("Nats-Last-Consumer") || "0");
      if (delivered !== expectedDelivery - 1) end("a message was missed");
      // The last messages of a stream may have been removed. Then only a heartbeat shows that none follows.
      else if (!isCaughtUp) progress.idle(Number(headers.get("Nats-Last-Stream") || "0"));
    }
  }

  function end(reason: string): void {
    if (hasEnded) return;
    hasEnded = true;
    clearInterval(watchdog);
    subscription.unsubscribe();
    // Also after a time-out, because the broker may still create the consumer.
    void manager.consumers.delete(stream, name).catch(() => undefined);
    ended.resolve(reason);
  }

  try {
    progress.created(await addConsumer(options, { name, deliver_subject: inbox }));
  } catch (error) {
    end("the consumer could not be created");
    throw error;
  }
  lastHeard = performance.now();
  if (!hasEnded)
    watchdog = setInterval(() => {
      if (performance.now() - lastHeard > silenceMs) end("no heartbeat from the broker");
    }, heartbeatMs);
  return {
    caughtUp: caughtUp.promise,
    ended: ended.promise,
    stop: end,
  };
}

async function addConsumer(
  { connection, stream, filter, from }: ReadOptions,
  identity: { name: string; deliver_subject: string },
): Promise<ConsumerInfo> {
  const config: Partial<ConsumerConfig> = {
    ...identity,
    ack_policy: AckPolicy.None,
    max_deliver: 1,
    flow_control: true,
    idle_heartbeat: nanos(heartbeatMs),
    inactive_threshold: nanos(consumerLifetimeMs),
    mem_storage: true,
    num_replicas: 1,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from,
    ...(filter === undefined ? {} : { filter_subject: filter }),
  };
  const patient = await jetstreamManager(connection, {
    checkAPI: false,
    timeout: creationTimeoutMs,
  });
  return patient.consumers.add(stream, config);
}

/**
 * A delivery's reply subject contains its position: `$JS.ACK.<stream>.<consumer>.<deliveries>.<stream
 * sequence>.<consumer sequence>.<time>.<pending>`, in newer servers with domain and account before the
 * stream and a further token at the end.
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
