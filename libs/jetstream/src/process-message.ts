import { backoffMs, pause } from "@halyard/timing";
import type { JetStreamClient, JsMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { ConnectionWatch } from "./connection-watch.ts";
import { publishDeadLetter } from "./dead-letter.ts";
import { failureName } from "./failures.ts";
import type { MessageInWork, Settlement } from "./messages-in-work.ts";
import type { QueueMetrics } from "./queue-metrics.ts";

export type QueueMessage = {
  subject: string;
  payload: Uint8Array;
  sequence: number;
  /** How often it has been delivered, to anybody. */
  deliveries: number;
  /** Creation time of its stream; a stream that was deleted and created again has another. */
  streamCreatedAt: string;
};

export type Verdict =
  /** It is taken care of, and leaves the queue. */
  | "done"
  /** It cannot be processed yet: the broker delivers it again after a moment. */
  | "later"
  /** It cannot ever be processed, for this reason: it is copied to where somebody looks, and leaves. */
  | { deadLetter: string };

export type ProcessingOptions = {
  connection: NatsConnection;
  client: JetStreamClient;
  /** By it the queue is called in figures. */
  subject: string;
  handle(message: QueueMessage): Promise<Verdict>;
  isOutage(error: unknown): boolean;
  onRetriesExhausted?(message: QueueMessage, error: unknown): Promise<void>;
  metrics: QueueMetrics;
  logger: Logger;
  watch: ConnectionWatch;
  streamCreatedAt: string;
};

/**
 * Sees one message through, from its first attempt to what the broker is told about it.
 *
 * Outages do not count as attempts. The broker's own limit (`max_deliver`) would count them, and leave a message that
 * exceeds it in the queue without notice.
 */
export async function processMessage(
  options: ProcessingOptions,
  message: MessageInWork,
): Promise<Settlement> {
  const { subject: queue, metrics } = options;
  const verdict = await reachVerdict(options, message);
  if (verdict === "cancelled") return "release";
  if (verdict === "later") return "later";
  if (verdict !== "done" && !(await deadLetter(options, message, verdict.deadLetter)))
    return "release";
  // Said into a connection that is lost, it would not be heard, and the message would come again.
  if (!(await options.watch.connected(message.cancelled))) return "release";
  metrics.messages.inc({ queue, outcome: verdict === "done" ? "done" : "set_aside" });
  return "remove";
}

async function reachVerdict(
  options: ProcessingOptions,
  { delivery, cancelled }: MessageInWork,
): Promise<Verdict | "cancelled"> {
  const { handle, onRetriesExhausted, isOutage, logger } = options;
  const message = queueMessage(delivery, options.streamCreatedAt);
  const failing = { isOutage, onFailure: failureReport(options, delivery), cancelled };
  const handled = await attempt(() => handle(message), failing);
  if (handled.outcome === "succeeded") return handled.result;
  if (handled.outcome === "cancelled") return "cancelled";

  const { error } = handled;
  const reported = await attempt(async () => onRetriesExhausted?.(message, error), failing);
  if (reported.outcome === "cancelled") return "cancelled";
  // The message goes all the same: it would come here again and again, and get no further.
  if (reported.outcome === "failed")
    logger.error(
      { err: reported.error, ...about(delivery) },
      "nobody could be told of a given-up message",
    );
  return { deadLetter: `failed ${triesPerMessage} times: ${failureName(error)}` };
}

/** Copies the message away; false when it was called off before the broker had the copy. */
async function deadLetter(
  options: ProcessingOptions,
  { delivery, cancelled }: MessageInWork,
  reason: string,
): Promise<boolean> {
  const { client } = options;
  const maxPayloadBytes = options.connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
  const copied = await attempt(
    () => publishDeadLetter({ client, maxPayloadBytes }, delivery, reason),
    // Whatever keeps the copy from being made keeps the original where it is.
    { isOutage: () => true, onFailure: failureReport(options, delivery), cancelled },
  );
  if (copied.outcome !== "succeeded") return false;
  options.logger.warn({ reason, ...about(delivery) }, "a message was set aside");
  return true;
}

function failureReport({ subject: queue, metrics, logger }: ProcessingOptions, delivery: JsMsg) {
  return ({ error, cause, count }: Failure): void => {
    metrics.retries.inc({ queue, cause });
    // An outage is told of once a message, not every few seconds.
    if (cause === "fault" || count === 1)
      logger.warn(
        { err: error, cause, ...about(delivery) },
        "a message could not be processed yet",
      );
  };
}

function queueMessage(delivery: JsMsg, streamCreatedAt: string): QueueMessage {
  const { streamSequence, deliveryCount } = delivery.info;
  return {
    subject: delivery.subject,
    payload: delivery.data,
    sequence: streamSequence,
    deliveries: deliveryCount,
    streamCreatedAt,
  };
}

function about(delivery: JsMsg) {
  const { stream, streamSequence } = delivery.info;
  return { stream, subject: delivery.subject, sequence: streamSequence };
}

/**
 * Tries a piece of work again until it succeeds. What is away comes back, so an outage is waited for
 * as long as it lasts; work that fails by its own fault fails the next time too, mostly, so after a
 * few times it has failed for good.
 */
export type Attempted<T> =
  | { outcome: "succeeded"; result: T }
  | { outcome: "failed"; error: unknown }
  /** The work was not to be gone on with; whether its last attempt had an effect is not known. */
  | { outcome: "cancelled" };

export type Failure = {
  error: unknown;
  cause: "outage" | "fault";
  /** Outages without anything else in between, or all faults. */
  count: number;
};

/** A fault that is none of the message's (a lost race, a deadlock) does not strike five times in a row. */
const triesPerMessage = 5;

/** Its maximum is the time after which the end of an outage is noticed. */
const backoff = { firstMs: 50, maxMs: 5_000 };

export async function attempt<T>(
  work: () => Promise<T>,
  options: {
    isOutage(error: unknown): boolean;
    onFailure(failure: Failure): void;
    /** Aborted, it ends the waiting between two attempts, never an attempt. */
    cancelled: AbortSignal;
  },
): Promise<Attempted<T>> {
  let faults = 0;
  let outages = 0;
  for (;;) {
    try {
      return { outcome: "succeeded", result: await work() };
    } catch (error) {
      const cause = options.isOutage(error) ? "outage" : "fault";
      if (cause === "fault") faults += 1;
      outages = cause === "outage" ? outages + 1 : 0;
      const count = cause === "outage" ? outages : faults;
      options.onFailure({ error, cause, count });
      if (faults === triesPerMessage) return { outcome: "failed", error };
      if (!(await pause(backoffMs(backoff, count), options.cancelled)))
        return { outcome: "cancelled" };
    }
  }
}
