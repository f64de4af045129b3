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
  /** Number of deliveries to all replicas. */
  deliveries: number;
  /** Creation time of the stream. It differs after the stream was deleted and created again. */
  streamCreatedAt: string;
};

export type Verdict =
  /** The message was processed and leaves the queue. */
  | "done"
  /** The message cannot be processed yet. The broker delivers it again after a delay. */
  | "later"
  /** The message can never be processed, for this reason. It is dead-lettered and leaves the queue. */
  | { deadLetter: string };

export type ProcessingOptions = {
  connection: NatsConnection;
  client: JetStreamClient;
  /** Name of the queue in metrics. */
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
 * Processes one message until its outcome is known.
 *
 * Outages do not count as attempts. The broker's own limit (`max_deliver`) would count them, and would silently leave a
 * message that exceeds it in the queue.
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
  // On a lost connection the acknowledgement would be lost, and the message would be delivered again.
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
  // The message is dead-lettered anyway. Otherwise it would be delivered and would fail for ever.
  if (reported.outcome === "failed")
    logger.error(
      { err: reported.error, ...about(delivery) },
      "the failure of a message could not be reported",
    );
  return { deadLetter: `failed ${triesPerMessage} times: ${failureName(error)}` };
}

/** Dead-letters the message. Returns false if the processing was cancelled before the broker stored the copy. */
async function deadLetter(
  options: ProcessingOptions,
  { delivery, cancelled }: MessageInWork,
  reason: string,
): Promise<boolean> {
  const { client } = options;
  const maxPayloadBytes = options.connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
  const copied = await attempt(
    () => publishDeadLetter({ client, maxPayloadBytes }, delivery, reason),
    // Until the copy is stored, the original stays in the queue.
    { isOutage: () => true, onFailure: failureReport(options, delivery), cancelled },
  );
  if (copied.outcome !== "succeeded") return false;
  options.logger.warn({ reason, ...about(delivery) }, "dead-lettered a message");
  return true;
}

function failureReport({ subject: queue, metrics, logger }: ProcessingOptions, delivery: JsMsg) {
  return ({ error, cause, count }: Failure): void => {
    metrics.retries.inc({ queue, cause });
    // An outage is logged once for each message, not every few seconds.
    if (cause === "fault" || count === 1)
      logger.warn({ err: error, cause, ...about(delivery) }, "a message could not be processed");
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
 * Repeats work until it succeeds. Outages end, so their number is not limited. A fault of the work itself mostly
 * recurs, so the work has failed after a few of them.
 */
export type Attempted<T> =
  | { outcome: "succeeded"; result: T }
  | { outcome: "failed"; error: unknown }
  /** The work was cancelled. Its last attempt may have had an effect. */
  | { outcome: "cancelled" };

export type Failure = {
  error: unknown;
  cause: "outage" | "fault";
  /** Number of consecutive outages, or of all faults. */
  count: number;
};

/** Maximum number of faults. Transient faults, such as a lost race or a deadlock, do not occur five times in a row. */
const triesPerMessage = 5;

/** The maximum delay is also the time within which the end of an outage is detected. */
const backoff = { firstMs: 50, maxMs: 5_000 };

export async function attempt<T>(
  work: () => Promise<T>,
  options: {
    isOutage(error: unknown): boolean;
    onFailure(failure: Failure): void;
    /** Ends the delay between two attempts, but never an attempt. */
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
