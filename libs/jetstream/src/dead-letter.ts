import { deadLetterStream } from "@halyard/contracts";
import type { JetStreamClient, JsMsg } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { keepSignature } from "./message-signatures.ts";
import { publishOnce } from "./publish-once.ts";

/** Maximum length of the reason. The text of an error may contain a whole document. */
const maxReasonLength = 1_000;
/** Part of the broker's maximum message size that is reserved for headers and subject. */
const roomForHeadersBytes = 8 * 1024;

/**
 * Copies a message that cannot be processed to the dead-letter stream. Resolves when the broker has stored the copy, so
 * that the original can be removed.
 *
 * If the original is not removed, it is copied again, and the broker drops the second copy by its message id. The id
 * contains the time of the message, because a stream that is deleted and created again begins with sequence 1.
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
  keepSignature(message.headers, about);
  // A message of the maximum size would not fit with its headers, and would block its queue for ever.
  const payload = message.data.subarray(0, options.maxPayloadBytes - roomForHeadersBytes);
  if (payload.length < message.data.length)
    about.set("Halyard-Cut-From-Bytes", String(message.data.length));
  await publishOnce(options.client, deadLetterStream.subjectPrefix + message.subject, payload, {
    headers: about,
    msgID: `${stream}.${streamSequence}.${message.timestampNanos}`,
    expect: { streamName: deadLetterStream.name },
  });
}

/** Returns a text as one line, because a header cannot have more, and cuts it. */
function headerText(text: string): string {
  return text.replace(/\p{Cc}+/gu, " ").slice(0, maxReasonLength);
}
