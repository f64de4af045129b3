import type { JetStreamClient } from "@nats-io/jetstream";

/**
 * Publishing that only one writer can win. Every message names the sequence that must stand last in
 * the stream, so the broker refuses a writer who does not know the end of it: one that lost its
 * leadership and wakes up late writes nothing. Within a batch each message names the one before, so
 * the whole batch is on its way at once and still lands in order, without gaps.
 *
 * Another client can still write behind the end that the writer knows, or between two messages. Then one message is
 * rejected, and the foreign one takes its sequence, so that the next message is accepted. Messages with ids
 * therefore also name the id of the message before: if one is rejected, all later ones are.
 */
export type OutgoingMessage = {
  subject: string;
  payload: string;
  /** The broker drops a second message of the same id within the stream's duplicate window. */
  messageId?: string;
};

export type FencedResult = {
  /** The stream sequences of the messages before the first one without an acknowledgement. */
  sequences: readonly number[];
  /** Why the first message that failed did; absent when all are in the stream. */
  failure?: unknown;
};

/** The broker answers in milliseconds; after this time it counts as away and the outcome is unknown. */
const acknowledgementTimeoutMs = 2_000;

/**
 * Publishes the messages in order behind `lastSequence`. A message without a sequence in the result
 * may still be in the stream (its acknowledgement was lost): read the stream before publishing again.
 */
export async function publishFenced(
  client: JetStreamClient,
  messages: readonly OutgoingMessage[],
  lastSequence: number,
): Promise<FencedResult> {
  const acknowledgements = await Promise.allSettled(
    messages.map((message, index) =>
      client.publish(message.subject, message.payload, {
        ...(message.messageId === undefined ? {} : { msgID: message.messageId }),
        expect: { lastSequence: lastSequence + index, ...idBefore(messages, index) },
        timeout: acknowledgementTimeoutMs,
        retries: 0,
      }),
    ),
  );
  const sequences: number[] = [];
  for (const outcome of acknowledgements) {
    if (outcome.status === "rejected") return { sequences, failure: outcome.reason };
    sequences.push(outcome.value.seq);
  }
  return { sequences };
}

function idBefore(messages: readonly OutgoingMessage[], index: number): { lastMsgID?: string } {
  const messageId = messages[index - 1]?.messageId;
  return messageId === undefined ? {} : { lastMsgID: messageId };
}
