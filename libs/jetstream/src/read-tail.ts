import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { readStream } from "./read-stream.ts";

/** A stream's messages could not be read to their end; the cause is a short reason. */
export class StreamReadError extends Error {
  override name = "StreamReadError";
}

/**
 * The message ids that stand in a stream from a sequence on, with their sequences: what a publisher
 * whose acknowledgements were lost reads before it publishes again.
 */
export async function readMessageIds(options: {
  connection: NatsConnection;
  manager: JetStreamManager;
  stream: string;
  fromSequence: number;
}): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  const reading = await readStream({
    connection: options.connection,
    manager: options.manager,
    stream: options.stream,
    filter: ">",
    from: { sequence: options.fromSequence },
    onMessage: ({ messageId, sequence }) => {
      if (messageId !== undefined) found.set(messageId, sequence);
    },
  });
  const failure = await Promise.race([reading.caughtUp, reading.ended]);
  reading.stop("read");
  if (failure !== undefined) throw new StreamReadError(failure);
  return found;
}
