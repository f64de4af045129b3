import { pause } from "@halyard/timing";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { ConnectionWatch } from "./connection-watch.ts";
import { readStream, type StreamMessage } from "./read-stream.ts";
import { streamPosition } from "./streams.ts";

/**
 * One attempt at following a stream. The stream has an identity, which is compared after catching up and
 * then every second, because a stream that was deleted, emptied or replaced does not always end the reading.
 */
export type FollowSource = {
  stream: string;
  /** Subjects to read; undefined for all. */
  filter: string | undefined;
  /** Returns the identity of the present content; undefined while that is not complete. */
  identify(manager: JetStreamManager): Promise<StreamIdentity | undefined>;
  /** Begins to read the content with this identity. */
  begin(found: StreamIdentity & { lastSequence: number }): StreamReader;
};

export type StreamIdentity = {
  identity: string;
  /** First sequence of the content; by default everything belongs to it. */
  firstSequence?: number | undefined;
};

export type StreamReader = {
  /** First sequence to read; by default all are read. */
  from?: number;
  take(message: StreamMessage): void;
  /** Everything up to the present has been delivered. Changes follow. */
  caughtUp(): void;
  /** At that time (Unix time in milliseconds), the reading was current and the identity the same. */
  confirmed?(atMs: number): void;
};

type AttemptOptions = {
  connection: NatsConnection;
  manager: JetStreamManager;
  watch: ConnectionWatch;
  source: FollowSource;
  /** Ends the attempt. After that it delivers nothing more. */
  signal: AbortSignal;
  onReading(): void;
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
  const found = await source.identify(manager);
  if (found === undefined) return "the stream is not complete yet";
  // After the identity, so that the reading reaches the end of the content also on a replica that lags.
  const position = await streamPosition(manager, source.stream);
  if (position === undefined) return "the stream is gone";
  signal.throwIfAborted();
  const { identity } = found;
  const { lastSequence } = position;
  const reader = source.begin({ ...found, lastSequence });
  const { from = 1 } = reader;
  options.onReading();
  const reading = await readStream({
    connection,
    manager,
    stream: source.stream,
    filter: source.filter,
    from,
    lastSequence,
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
    if ((await source.identify(manager))?.identity !== identity)
      return "the stream was replaced while it was read";
    signal.throwIfAborted();
    options.onCurrent();
    reader.caughtUp();
    options.logger.info({ identity, from }, "following the stream");
    return await Promise.race([reading.ended, replaced(options, identity, reader)]);
  } finally {
    stopReading();
  }
}

/**
 * Resolves when the stream has another identity. A request without an answer proves nothing, and
 * changes still arrive, so the check is repeated.
 */
async function replaced(
  options: AttemptOptions,
  identity: string,
  reader: StreamReader,
): Promise<string> {
  const { manager, source, signal, logger } = options;
  let isAnswered = true;
  while (await pause(identityCheckIntervalMs, signal)) {
    const atMs = Date.now();
    try {
      if ((await source.identify(manager))?.identity !== identity)
        return "the stream was deleted or replaced";
      if (!signal.aborted) reader.confirmed?.(atMs);
      isAnswered = true;
    } catch (err) {
      if (isAnswered && !signal.aborted)
        logger.warn({ err }, "the identity of the stream is not known; asking again");
      isAnswered = false;
    }
  }
  return "the attempt is over";
}
