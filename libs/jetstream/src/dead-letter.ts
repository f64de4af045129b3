import { deadLetterStream } from "@halyard/contracts";
import type { JetStreamClient, JsMsg } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";

/** The broker answers in milliseconds; after this time it counts as away. */
const acknowledgementTimeoutMs = 2_000;
/** Of an error's text, as much as tells what was wrong; it may quote a whole document. */
const maxReasonLength = 1_000;
/** What headers and subject take of the broker's largest message, at most. */
const roomForHeadersBytes = 8 * 1024;

/**
 * Copies a message that nobody can process to where somebody can look at it. Resolves when the broker
 * has the copy, so that the original may go.
 *
 * The copy's message id names this one message for all time, also after its stream was made anew and
 * counts from one again: a copy that is made a second time, because the original was not removed the
 * first time, is dropped by the broker.
 */
export async function publishDeadLetter(
  options: { client: JetStreamClient; maxPayloadBytes: number },
  message: JsMsg,
  reason: string,
): Promise<void> {
  const { stream, streamSequence } = message.info;
  const about = headers();
  about.set("Halyard-Reason", headerText(reason));
  about.set("Halyard-Subject", message.subject);
  about.set("Halyard-Stream", stream);
  about.set("Halyard-Sequence", String(streamSequence));
  about.set("Halyard-Time", message.timestamp);
  // A message of the largest size would not fit with its headers, and block its queue for ever.
  const payload = message.data.subarray(0, options.maxPayloadBytes - roomForHeadersBytes);
  if (payload.length < message.data.length)
    about.set("Halyard-Cut-From-Bytes", String(message.data.length));
  await options.client.publish(deadLetterStream.subjectPrefix + message.subject, payload, {
    headers: about,
    msgID: `${stream}.${streamSequence}.${message.timestampNanos}`,
    expect: { streamName: deadLetterStream.name },
    timeout: acknowledgementTimeoutMs,
    retries: 0,
  });
}

/** A header is one line. */
function headerText(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ").slice(0, maxReasonLength);
}
