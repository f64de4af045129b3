import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { StreamMessage } from "./push-message.ts";
import { readStream } from "./read-stream.ts";
import { streamPosition } from "./streams.ts";

/** A stream could not be read to its end. The message is one of a few constant texts. */
export class StreamReadError extends Error {
  override readonly name = "StreamReadError";
  readonly hasSafeMessage = true;
}

type PageOptions = {
  connection: NatsConnection;
  manager: JetStreamManager;
  stream: string;
  fromSequence: number;
  pageSize: number;
};

type Page = {
  /** Sequence of the last message that was read; undefined if there was none. */
  lastSequence: number | undefined;
  /** True if the stream ended before the page was full. */
  isLast: boolean;
};

type MessageIdPage = Page & {
  /** Message ids and their sequences, without messages that have no id. */
  ids: ReadonlyMap<string, number>;
};

/**
 * Reads the message ids in a stream from a sequence on. A publisher whose acknowledgements were lost reads them before
 * it publishes again. A log may contain a week of messages, so it is read in pages.
 */
export async function readMessageIds(options: PageOptions): Promise<MessageIdPage> {
  const ids = new Map<string, number>();
  const page = await readPage(options, ({ messageId, sequence }) => {
    if (messageId !== undefined) ids.set(messageId, sequence);
  });
  return { ids, ...page };
}

/** Reads at most `pageSize` messages of a stream from a sequence on, and passes each to `onMessage`. */
export async function readPage(
  options: PageOptions,
  onMessage: (message: StreamMessage) => void,
): Promise<Page> {
  const full = Promise.withResolvers<"full">();
  let read = 0;
  let lastSequence: number | undefined;
  const position = await streamPosition(options.manager, options.stream);
  if (position === undefined) throw new StreamReadError("the stream does not exist");
  const reading = await readStream({
    connection: options.connection,
    manager: options.manager,
    stream: options.stream,
    filter: undefined,
    from: options.fromSequence,
    lastSequence: position.lastSequence,
    onMessage: (message) => {
      if (read === options.pageSize) return;
      read += 1;
      lastSequence = message.sequence;
      onMessage(message);
      if (read === options.pageSize) full.resolve("full");
    },
  });
  const outcome = await Promise.race([full.promise, reading.caughtUp, reading.ended]);
  reading.stop("read");
  if (outcome !== undefined && outcome !== "full") throw new StreamReadError(outcome);
  return { lastSequence, isLast: outcome === undefined };
}
