import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { pause } from "./attempt.ts";
import type { ConnectionWatch } from "./connection-watch.ts";
import { readStream, type StreamMessage } from "./read-stream.ts";
import { streamPosition } from "./streams.ts";

/**
 * One attempt at following a stream. The stream has an identity, which is compared after the full read and
 * then every second, because a stream that was deleted, emptied or replaced does not always end the reading.
 */
export type FollowSource = {
  stream: string;
  /** Subjects to read. */
  filter: string;
  /** Returns the identity of the present content; undefined while that is not complete. */
  identify(manager: JetStreamManager): Promise<string | undefined>;
  /** Begins a full read. */
  begin(): StreamReader;
};

export type StreamReader = {
  take(message: StreamMessage): void;
  /** The full read is complete. Changes follow. */
  caughtUp(identity: string): void;
};

type AttemptOptions = {
  connection: NatsConnection;
  manager: JetStreamManager;
  watch: ConnectionWatch;
  source: FollowSource;
  /** Ends the attempt. After that it delivers nothing more. */
  signal: AbortSignal;
  onMessage(): void;
  onCurrent(): void;
  logger: Logger;
};

const identityCheckIntervalMs = 1_000;

/** Follows until an irregularity, and returns it. */
export async function followOnce(options: AttemptOptions): Promise<string> {
  const { connection, manager, source, signal } = options;
  // Requests to a disconnected broker are lost, and their time-outs can outlast the outage.
  await options.watch.connected(signal);
  // The identity of a stream that does not exist is answered only by a time-out.
  if ((await streamPosition(manager, source.stream)) === undefined)
    return "the stream does not exist yet";
  const identity = await source.identify(manager);
  if (identity === undefined) return "the stream is not complete yet";
  signal.throwIfAborted();
  const reader = source.begin();
  const reading = await readStream({
    connection,
    manager,
    stream: source.stream,
    filter: source.filter,
    from: "last-per-subject",
    onMessage(message) {
      if (signal.aborted) return;
      options.onMessage();
      reader.take(message);
    },
  });
  const stopReading = () => reading.stop("the attempt is over");
  signal.addEventListener("abort", stopReading);
  try {
    signal.throwIfAborted();
    const failure = await Promise.race([reading.caughtUp, reading.ended]);
    if (failure !== undefined) return failure;
    if ((await source.identify(manager)) !== identity)
      return "the stream was replaced while it was read";
    signal.throwIfAborted();
    options.onCurrent();
    reader.caughtUp(identity);
    options.logger.info({ identity }, "following the stream");
    return await Promise.race([reading.ended, replaced(options, identity)]);
  } finally {
    stopReading();
  }
}

/**
 * Resolves when the stream has another identity. A request without an answer proves nothing, and
 * changes still arrive, so the check is repeated.
 */
async function replaced(options: AttemptOptions, identity: string): Promise<string> {
  const { manager, source, signal, logger } = options;
  let isAnswered = true;
  while (await pause(identityCheckIntervalMs, signal)) {
    try {
      if ((await source.identify(manager)) !== identity)
        return "the stream was deleted or replaced";
      isAnswered = true;
    } catch (err) {
      if (isAnswered && !signal.aborted)
        logger.warn({ err }, "the identity of the stream is not known; asking again");
      isAnswered = false;
    }
  }
  return "the attempt is over";
}
