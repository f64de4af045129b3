import type { SigningService } from "@halyard/contracts";
import { backoffMs, pause } from "@halyard/timing";
import {
  currentSpan,
  inSpan,
  type Span,
  startMessaging,
  type TraceContext,
} from "@halyard/tracing";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { ConnectionWatch } from "./connection-watch.ts";
import { publishDeadLetter } from "./dead-letter.ts";
import { failureName } from "./failures.ts";
import { traceOf } from "./message-headers.ts";
import type { Origin, VerifyMessage } from "./message-signatures.ts";
import type { MessageInWork, Settlement } from "./messages-in-work.ts";
import type { QueueMetrics } from "./queue-metrics.ts";
import { throttleLog } from "./throttled-log.ts";

export type QueueMessage = {
  subject: string;
  payload: Uint8Array;
  sequence: number;
  /** Number of deliveries to all replicas. */
  deliveries: number;
  /** Creation time of the stream. It differs after the stream was deleted and created again. */
  streamCreatedAt: string;
  /** The service that signed the message. Undefined in a queue without signatures, or in development without keys. */
  writer: SigningService | undefined;
  /** Context of the span that sent the message. Undefined without traces. */
  trace: TraceContext | undefined;
};

export type Verdict =
  /** The message was processed and leaves the queue. */
  | "done"
  /** The message cannot be processed yet. The broker delivers it again after a delay. */
  | "later"
  /** The message can never be processed, for this reason. It is dead-lettered and leaves the queue. */
  | { deadLetter: string };

export type HandlerOptions = {
  connection: NatsConnection;
  /** Subject of the messages, and the name of the queue in metrics. */
  subject: string;
  /** Verifies the signatures of the messages. `unsigned`: the queue has none, so every message is accepted. */
  verify: VerifyMessage | "unsigned";
  /** Called only with messages that are verified. */
  handle(message: QueueMessage): Promise<Verdict>;
  /** Returns whether an error of `handle` is an outage, whose end is awaited, or a fault of the message. */
  isOutage(error: unknown): boolean;
  /**
   * Called when a message has failed five times by its own fault, before it is dead-lettered. Like `handle`, it may be
   * called again for the same message, and the end of outages is awaited.
   */
  onRetriesExhausted?(message: QueueMessage, error: unknown): Promise<void>;
  /** The handler begins a span for each batch, so single messages have none. */
  inBatches?: boolean;
  metrics: QueueMetrics;
  logger: Logger;
};

type ProcessingOptions = HandlerOptions & {
  client: JetStreamClient;
  watch: ConnectionWatch;
  streamCreatedAt: string;
  logForeign: (about: MessagePosition) => void;
};

type MessagePosition = { stream: string; subject: string; sequence: number };

/**
 * Processes one message until its outcome is known.
 *
 * Outages do not count as attempts. The broker's own limit (`max_deliver`) would count them, and would silently leave a
 * message that exceeds it in the queue.
 */
export async function processMessage(
  options: ProcessingOptions,
  inWork: MessageInWork,
): Promise<Settlement> {
  const origin = originOf(options, inWork);
  // Consumers have no right to dead-letter under a foreign subject.
  if (origin === "foreign") return dropForeign(options, inWork);
  return inSpan(startProcessing(options, inWork), () => reachSettlement(options, inWork, origin));
}

/** Begins the span of a message that was sent in a span. */
function startProcessing(
  { inBatches = false }: ProcessingOptions,
  { delivery }: MessageInWork,
): Span | undefined {
  const parent = inBatches ? undefined : traceOf(delivery.headers);
  if (parent === undefined) return undefined;
  const messageId = delivery.headers?.get("Nats-Msg-Id") || undefined;
  return startMessaging("process", { destination: delivery.subject, messageId, parent });
}

async function reachSettlement(
  options: ProcessingOptions,
  inWork: MessageInWork,
  origin: Exclude<Origin, "foreign">,
): Promise<Settlement> {
  const { subject: queue, metrics } = options;
  const verdict =
    origin === "forged" ? forgedVerdict : await reachVerdict(options, inWork, origin.writer);
  if (verdict === "cancelled") return "release";
  if (verdict === "later") return "later";
  if (verdict !== "done") currentSpan()?.fail("dead_letter");
  if (verdict !== "done" && !(await deadLetter(options, inWork, verdict.deadLetter)))
    return "release";
  // On a lost connection the acknowledgement would be lost, and the message would be delivered again.
  if (!(await options.watch.connected(inWork.cancelled))) return "release";
  const outcome = verdict === "done" ? "done" : "set_aside";
  metrics.messages.inc({ queue, outcome: origin === "forged" ? "forged" : outcome });
  return "remove";
}

function originOf({ verify }: ProcessingOptions, { delivery }: MessageInWork): Origin {
  if (verify === "unsigned") return { writer: undefined };
  const { subject, data: payload, headers } = delivery;
  return verify({ subject, payload, headers });
}

const forgedVerdict = { deadLetter: "no valid signature" } as const;

export const createForeignLog = (logger: Logger) =>
  throttleLog<MessagePosition>((about) =>
    logger.error(about, "removed a message that another client has delivered to the stream"),
  );

function dropForeign(
  { subject: queue, metrics, logForeign }: ProcessingOptions,
  inWork: MessageInWork,
): Settlement {
  metrics.messages.inc({ queue, outcome: "forged" });
  logForeign(about(inWork));
  return "remove";
}

async function reachVerdict(
  options: ProcessingOptions,
  inWork: MessageInWork,
  writer: SigningService | undefined,
): Promise<Verdict | "cancelled"> {
  const { handle, onRetriesExhausted, isOutage, logger, streamCreatedAt } = options;
  const { subject, data: payload, info, headers } = inWork.delivery;
  const { streamSequence: sequence, deliveryCount: deliveries } = info;
  const received = { subject, payload, trace: traceOf(headers) };
  const message = { ...received, sequence, deliveries, streamCreatedAt, writer };
  const handled = await attempt(() => handle(message), isOutage, options, inWork);
  if (handled === "cancelled") return "cancelled";
  if ("result" in handled) return handled.result;

  const { error } = handled;
  const report = async () => onRetriesExhausted?.(message, error);
  const reported = await attempt(report, isOutage, options, inWork);
  if (reported === "cancelled") return "cancelled";
  // The message is dead-lettered anyway. Otherwise it would be delivered and would fail for ever.
  if ("error" in reported)
    logger.error(
      { err: reported.error, ...about(inWork) },
      "the failure of a message could not be reported",
    );
  return { deadLetter: `failed ${triesPerMessage} times: ${failureName(error)}` };
}

/** Dead-letters the message. Returns false if the processing was cancelled before the broker stored the copy. */
async function deadLetter(
  options: ProcessingOptions,
  inWork: MessageInWork,
  reason: string,
): Promise<boolean> {
  const { client, connection, logger } = options;
  const maxPayloadBytes = connection.info?.max_payload ?? Number.POSITIVE_INFINITY;
  const copy = () => publishDeadLetter({ client, maxPayloadBytes }, inWork.delivery, reason);
  // Until the copy is stored, the original stays in the queue.
  if ((await attempt(copy, () => true, options, inWork)) === "cancelled") return false;
  logger.warn({ reason, ...about(inWork) }, "dead-lettered a message");
  return true;
}

function about({ delivery }: MessageInWork): MessagePosition {
  const { stream, streamSequence } = delivery.info;
  return { stream, subject: delivery.subject, sequence: streamSequence };
}

/** Maximum number of faults. Transient faults, such as a lost race or a deadlock, do not occur five times in a row. */
const triesPerMessage = 5;

/** The maximum delay is also the time within which the end of an outage is detected. */
const backoff = { firstMs: 50, maxMs: 5_000 };

/**
 * Repeats work for a message until it succeeds. Outages end, so their number is not limited. A fault of the work itself
 * mostly recurs, so the work has failed after a few of them. A cancellation ends the delay between two attempts, but
 * never an attempt. The last attempt of cancelled work may have had an effect.
 */
async function attempt<T>(
  work: () => Promise<T>,
  isOutage: (error: unknown) => boolean,
  { subject: queue, metrics, logger }: ProcessingOptions,
  inWork: MessageInWork,
): Promise<{ result: T } | { error: unknown } | "cancelled"> {
  let faults = 0;
  /** Number of consecutive outages. */
  let outages = 0;
  for (;;) {
    try {
      return { result: await work() };
    } catch (error) {
      const cause = isOutage(error) ? "outage" : "fault";
      if (cause === "fault") faults += 1;
      outages = cause === "outage" ? outages + 1 : 0;
      const count = cause === "outage" ? outages : faults;
      metrics.retries.inc({ queue, cause });
      // An outage is logged once for each message, not every few seconds.
      if (cause === "fault" || count === 1)
        logger.warn({ err: error, cause, ...about(inWork) }, "a message could not be processed");
      if (faults === triesPerMessage) return { error };
      if (!(await pause(backoffMs(backoff, count), inWork.cancelled))) return "cancelled";
    }
  }
}
