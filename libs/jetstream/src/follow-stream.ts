import { backoffMs, pause } from "@halyard/timing";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { repeatAttempts } from "./attempts.ts";
import { apiTimeoutMs } from "./connect.ts";
import { type ConnectionWatch, watchConnection } from "./connection-watch.ts";
import { failureName } from "./failures.ts";
import type { StreamMessage } from "./push-message.ts";
import { readStream } from "./read-stream.ts";
import { streamPosition } from "./streams.ts";
import { startWatchdog } from "./watchdog.ts";

/**
 * Follows a stream of newest values: reads all of them, then each change. Any irregularity ends the attempt, and the
 * source decides from where the next one reads. The reader keeps its state between attempts.
 *
 * Each attempt has a signal, which the loss of the connection, the watchdog and `stop` abort. The loop then continues
 * without waiting for the attempt. An aborted attempt delivers no more messages.
 */
export type FollowedStream = {
  /** Returns whether everything in the stream has been delivered, as far as this process can detect. */
  isCurrent(): boolean;
  stop(): Promise<void>;
};

/** Reads are expensive for the broker, so the delay grows with each failed read. */
const backoff = { firstMs: 250, maxMs: 5_000, jitter: 0.5 };
/**
 * Time-outs of creating a consumer. A cluster may place it on a server that it has just lost, and sends no response, so
 * the first time-out is short. A busy broker needs seconds, so later ones are longer.
 */
const creationTimeout = { firstMs: 2_000, maxMs: 10_000, jitter: 0 };
/** Longer than the sum of the longest delay and the time-outs of all requests of one attempt. */
const defaultStalledAfterMs = 20_000;

type FollowOptions = {
  connection: NatsConnection;
  source: FollowSource;
  logger: Logger;
  /** Time without progress after which the watchdog restarts the follower. */
  stalledAfterMs?: number;
};

export function followStream(options: FollowOptions): FollowedStream {
  const { connection, source } = options;
  const { stream } = source;
  const logger = options.logger.child({ stream });
  const watch = watchConnection(connection);
  const stopping = new AbortController();
  const managing = jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  let attempt = new AbortController();
  let current: AbortSignal | undefined;
  let restarts = 0;
  /** Number of consecutive reads that ended before they were current. */
  let failedReadings = 0;
  const isCurrent = () => current === attempt.signal && !current.aborted;

  async function follow(): Promise<string> {
    const manager = await managing;
    attempt = new AbortController();
    const { signal } = attempt;
    const following = followOnce({
      ...{ connection, manager, watch, source, signal, logger },
      onReading: () => {
        failedReadings += 1;
        return backoffMs(creationTimeout, failedReadings);
      },
      onMessage: watchdog.progress,
      onCurrent: () => {
        failedReadings = 0;
        current = signal;
        attempts.works();
      },
    });
    const reason = await Promise.race([reasonOf(signal), following.catch(failureName)]);
    attempt.abort(reason);
    return reason;
  }

  const watchdog = startWatchdog({
    stalledAfterMs: options.stalledAfterMs ?? defaultStalledAfterMs,
    isExpected: () => !isCurrent() && watch.isConnected(),
    onStalled() {
      restarts += 1;
      const lastReason = attempts.lastReason();
      logger.error({ lastReason, restarts }, "not current while NATS is connected; restarting");
      attempt.abort("the watchdog found no progress");
    },
  });
  const stopListening = watch.onLoss(() => {
    failedReadings = 0;
    attempt.abort("the connection to NATS was lost");
  });
  const state = { stream, isCurrent, restarts: () => restarts };
  watch.followers.add(state);
  const attempts = repeatAttempts({
    ...{ connection, logger, signal: stopping.signal },
    attempt: follow,
    delayMs: () => backoffMs(backoff, failedReadings + 1),
    interrupted: "following the stream was interrupted",
  });
  return {
    isCurrent,
    async stop() {
      stopping.abort();
      attempt.abort("stopped");
      await attempts.ended;
      watchdog.stop();
      stopListening();
      watch.followers.delete(state);
    },
  };
}

/** Resolves with the reason when the signal is aborted. */
function reasonOf(signal: AbortSignal): Promise<string> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(String(signal.reason)), { once: true });
  });
}

/**
 * The stream to follow. Its content has an identity, which is compared after catching up and then every second, because
 * the deletion, purge or replacement of a stream does not always end the read.
 */
type FollowSource = {
  stream: string;
  /** Subjects to read; undefined for all. */
  filter: string | undefined;
  /** Returns the identity of the current content; undefined while the content is incomplete. */
  identify(manager: JetStreamManager): Promise<StreamIdentity | undefined>;
  /** Begins to read the content with this identity. */
  begin(found: StreamIdentity & { lastSequence: number }): StreamReader;
};

export type StreamIdentity = {
  identity: string;
  /** First sequence of the content; by default the first one of the stream. */
  firstSequence?: number | undefined;
};

export type StreamReader = {
  /** First sequence to read; by default the first one of the stream. */
  from?: number;
  take(message: StreamMessage): void;
  /** Called when the read has caught up. Changes follow. */
  caughtUp(): void;
  /** Called with a time (Unix time in milliseconds) at which the state was current and the identity unchanged. */
  confirmed?(atMs: number): void;
};

type AttemptOptions = {
  connection: NatsConnection;
  manager: JetStreamManager;
  watch: ConnectionWatch;
  source: FollowSource;
  /** Ends the attempt, which then delivers nothing more. */
  signal: AbortSignal;
  /** Called when a read begins. Returns the time-out of creating its consumer. */
  onReading(): number;
  onMessage(): void;
  onCurrent(): void;
  logger: Logger;
};

const identityCheckIntervalMs = 1_000;

/** Follows the stream until an irregularity, and returns the reason. */
async function followOnce(options: AttemptOptions): Promise<string> {
  const { connection, manager, source, signal } = options;
  // Requests to a disconnected broker are lost, and their time-outs can outlast the outage.
  await options.watch.connected(signal);
  // For a stream that does not exist, the request of its identity ends only by a time-out.
  if ((await streamPosition(manager, source.stream)) === undefined)
    return "the stream does not exist yet";
  const found = await source.identify(manager);
  if (found === undefined) return "the stream is not complete yet";
  // The position is read after the identity, so that the read includes the whole content even on a replica that lags.
  const position = await streamPosition(manager, source.stream);
  if (position === undefined) return "the stream no longer exists";
  signal.throwIfAborted();
  const { identity } = found;
  const { lastSequence } = position;
  const reader = source.begin({ ...found, lastSequence });
  const { from = 1 } = reader;
  const reading = await readStream({
    connection,
    manager,
    stream: source.stream,
    filter: source.filter,
    from,
    lastSequence,
    onCreation: options.onReading,
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
 * Resolves when the stream has another identity. A failed request proves nothing, and changes still arrive, so the
 * check is repeated.
 */
async function replaced(
  options: AttemptOptions,
  identity: string,
  reader: StreamReader,
): Promise<string> {
  const { manager, source, signal, logger } = options;
  let isReadable = true;
  while (await pause(identityCheckIntervalMs, signal)) {
    const atMs = Date.now();
    try {
      if ((await source.identify(manager))?.identity !== identity)
        return "the stream was deleted or replaced";
      if (!signal.aborted) reader.confirmed?.(atMs);
      isReadable = true;
    } catch (err) {
      if (isReadable && !signal.aborted)
        logger.warn({ err }, "the identity of the stream could not be read; retrying");
      isReadable = false;
    }
  }
  return "the attempt is over";
}
