import type { TraceContext } from "@halyard/tracing";
import type { JetStreamClient } from "@nats-io/jetstream";
import { messageHeaders } from "./message-headers.ts";
import { publishOnce } from "./publish-once.ts";

/**
 * Publishes with a fence, so that only one writer succeeds. Every message contains the expected last sequence of the
 * stream. The broker rejects a writer that does not know the end of the stream, such as a former leader that was
 * suspended. In a batch, each message expects the sequence of the previous one. A batch is therefore sent in
 * runs: the messages of a run are sent without waiting, and are stored in order and without gaps.
 *
 * Another client can still write after the known end, or between two messages. Then one message is rejected, the other
 * client's message takes its sequence, and the next message is accepted. A second message of an `entity` therefore begins
 * the next run. The condition "expected last message id" would be simpler, but a cluster of nats-server 2.15 rejects
 * everything after it has failed once.
 */
export type OutgoingMessage = {
  subject: string;
  payload: string;
  /** The broker drops a message with a known id within the stream's duplicate window. */
  messageId?: string;
  /** The signature of the message, if its stream has signed messages. */
  signature?: string | undefined;
  /** Context of the span that sends the message. */
  trace?: TraceContext | undefined;
  /** Messages with the same value are stored in order, even if another client writes to the stream. */
  entity?: string;
};

type FencedResult = {
  /** Sequences of the messages before the first one without an acknowledgement. */
  sequences: readonly number[];
  /** Error of the first failed message; absent if all are in the stream. */
  failure?: unknown;
};

/**
 * Publishes the messages in order after `lastSequence`. A message without a sequence in the result may still be in the
 * stream, if its acknowledgement was lost: read the stream before publishing it again.
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
      publishOnce(client, message.subject, message.payload, {
        ...(message.messageId === undefined ? {} : { msgID: message.messageId }),
        expect: { lastSequence: lastSequence + index },
        ...messageHeaders(message),
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
