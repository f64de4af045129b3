import type { JetStreamClient } from "@nats-io/jetstream";

/**
 * Publishing that only one writer can win. Every message names the sequence that must stand last in
 * the stream, so the broker refuses a writer who does not know the end of it: one that lost its
 * leadership and wakes up late writes nothing. Within a batch each message names the one before, so
 * the whole batch is on its way at once and still lands in order, without gaps.
 *
 * Another client can still write behind the end that the writer knows, or between two messages. Then one message is
 * rejected, and the foreign one takes its sequence, so that the next message is accepted. Messages of one `entity`
 * are therefore never on their way together. The condition "expected last message id" would be simpler, but
 * a cluster of nats-server 2.15 accepts nothing more after it has failed once.
 */
export type OutgoingMessage = {
  subject: string;
  payload: string;
  /** The broker drops a second message of the same id within the stream's duplicate window. */
  messageId?: string;
  /** Messages with the same value are stored in their order, also if another client writes to the stream. */
  entity?: string;
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
  const sequences: number[] = [];
  for (const run of runsOf(messages)) {
    const result = await publishRun(client, run, lastSequence + sequences.length);
    sequences.push(...result.sequences);
    if (result.failure !== undefined) return { sequences, failure: result.failure };
  }
  return { sequences };
}

/** Splits the messages before each one whose entity is already in the run. */
function runsOf(messages: readonly OutgoingMessage[]): OutgoingMessage[][] {
  const runs: OutgoingMessage[][] = [];
  let entities = new Set<string>();
  for (const message of messages) {
    const { entity } = message;
    const run = entity !== undefined && entities.has(entity) ? undefined : runs.at(-1);
    if (run === undefined) {
      runs.push([message]);
      entities = new Set();
    } else run.push(message);
    if (entity !== undefined) entities.add(entity);
  }
  return runs;
}

async function publishRun(
  client: JetStreamClient,
  messages: readonly OutgoingMessage[],
  lastSequence: number,
): Promise<FencedResult> {
  const acknowledgements = await Promise.allSettled(
    messages.map((message, index) =>
      client.publish(message.subject, message.payload, {
        ...(message.messageId === undefined ? {} : { msgID: message.messageId }),
        expect: { lastSequence: lastSequence + index },
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
