import type { JetStreamClient, JsMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { attempt, type Failure, triesPerMessage } from "./attempt.ts";
import type { ConnectionWatch } from "./connection-watch.ts";
import type { QueueMessage, Verdict } from "./consume.ts";
import { failureName } from "./failures.ts";
import type { MessageInWork, Settlement } from "./messages-in-work.ts";
import type { QueueMetrics } from "./queue-metrics.ts";
import { copySetAside } from "./set-aside.ts";

export type ProcessingOptions = {
  connection: NatsConnection;
  client: JetStreamClient;
  /** By it the queue is called in figures. */
  subject: string;
  handle(message: QueueMessage): Promise<Verdict>;
  isOutage(error: unknown): boolean;
  onGivenUp?(message: QueueMessage, error: unknown): Promise<void>;
  metrics: QueueMetrics;
  logger: Logger;
  watch: ConnectionWatch;
  streamCreatedAt: string;
};

/** Sees one message through, from its first attempt to what the broker is told about it. */
export async function processMessage(
  options: ProcessingOptions,
  message: MessageInWork,
): Promise<Settlement> {
  const { subject: queue, metrics } = options;
  const verdict = await reachVerdict(options, message);
  if (verdict === "called off") return "give back";
  if (verdict === "later") return "later";
  if (verdict !== "done" && !(await setAside(options, message, verdict.setAside)))
    return "give back";
  // Said into a connection that is lost, it would not be heard, and the message would come again.
  if (!(await options.watch.connected(message.calledOff))) return "give back";
  metrics.messages.inc({ queue, outcome: verdict === "done" ? "done" : "set_aside" });
  return "remove";
}

async function reachVerdict(
  options: ProcessingOptions,
  { delivery, calledOff }: MessageInWork,
): Promise<Verdict | "called off"> {
  const { handle, onGivenUp, isOutage, logger } = options;
  const message = queueMessage(delivery, options.streamCreatedAt);
  const failing = { isOutage, onFailure: failureReport(options, delivery), calledOff };
  const handled = await attempt(() => handle(message), failing);
  if (handled.outcome === "succeeded") return handled.result;
  if (handled.outcome === "called off") return "called off";

  const { error } = handled;
  const told = await attempt(async () => onGivenUp?.(message, error), failing);
  if (told.outcome === "called off") return "called off";
  // The message goes all the same: it would come here again and again, and get no further.
  if (told.outcome === "failed")
    logger.error(
      { err: told.error, ...about(delivery) },
      "nobody could be told of a given-up message",
    );
  return { setAside: `failed ${triesPerMessage} times: ${failureName(error)}` };
}

/** Copies the message away; false when it was called off before the broker had the copy. */
async function setAside(
  options: ProcessingOptions,
  { delivery, calledOff }: MessageInWork,
  reason: string,
): Promise<boolean> {
  const { client } = options;
  const maxPayloadBytes = options.connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
  const copied = await attempt(
    () => copySetAside({ client, maxPayloadBytes }, delivery, reason),
    // Whatever keeps the copy from being made keeps the original where it is.
    { isOutage: () => true, onFailure: failureReport(options, delivery), calledOff },
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
