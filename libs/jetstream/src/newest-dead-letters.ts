import { deadLetterStream } from "@halyard/contracts";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { StreamMessage } from "./push-message.ts";
import { readStream } from "./read-stream.ts";
import { StreamReadError } from "./read-tail.ts";
import { findStream } from "./streams.ts";

type DeadLetter = {
  /** Subject of the original message. */
  subject: string;
  /** Undefined for a message that no consumer has dead-lettered. */
  reason: string | undefined;
  at: Date;
};

export type DeadLetters = {
  count: number;
  /** Newest first, without contents. */
  newest: readonly DeadLetter[];
};

const maxNewest = 20;
/** Maximum number of removed messages to skip. It bounds the read if an operator removed many. */
const maxSkipped = 1_000;
/** Consumers write reasons of at most 1,000 characters, but a compromised one may write more. */
const maxTextLength = 200;

/**
 * Creates a function that reads the newest dead letters. It reads only headers, because contents may be large and may
 * contain secrets. While the stream does not change, one call costs one small request.
 */
export function createDeadLetterReader(options: {
  connection: NatsConnection;
  manager: JetStreamManager;
}): () => Promise<DeadLetters> {
  const { manager } = options;
  let last: { state: string; found: DeadLetters } | undefined;
  return async () => {
    const info = await findStream(manager, deadLetterStream.name);
    if (info === undefined) return { count: 0, newest: [] };
    const { messages: count, first_seq, last_seq: lastSequence, num_deleted = 0 } = info.state;
    const state = JSON.stringify([info.created, count, first_seq, lastSequence]);
    if (last?.state === state) return last.found;
    const skipped = Math.min(num_deleted, maxSkipped);
    const from = Math.max(first_seq, lastSequence - (maxNewest - 1) - skipped);
    const newest = count === 0 ? [] : await readFrom(options, { from, lastSequence });
    last = { state, found: { count, newest } };
    return last.found;
  };
}

async function readFrom(
  options: { connection: NatsConnection; manager: JetStreamManager },
  range: { from: number; lastSequence: number },
): Promise<readonly DeadLetter[]> {
  const letters: DeadLetter[] = [];
  const reading = await readStream({
    ...{ ...options, ...range },
    stream: deadLetterStream.name,
    // With a filter, the read does not wait for a heartbeat if the last message was removed.
    filter: `${deadLetterStream.subjectPrefix}>`,
    headersOnly: true,
    onMessage: (message) => {
      letters.push(deadLetterOf(message));
      if (letters.length > maxNewest) letters.shift();
    },
  });
  const failure = await Promise.race([reading.caughtUp, reading.ended]);
  reading.stop("read");
  if (failure !== undefined) throw new StreamReadError(failure);
  return letters.toReversed();
}

function deadLetterOf({ subject, headers, timeNanos }: StreamMessage): DeadLetter {
  const original = subject.slice(deadLetterStream.subjectPrefix.length);
  return {
    subject: original.slice(0, maxTextLength),
    reason: headers?.get("Halyard-Reason").slice(0, maxTextLength) || undefined,
    at: new Date(timeNanos / 1e6),
  };
}
