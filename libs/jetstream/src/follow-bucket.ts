import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { pause } from "./attempt.ts";
import { apiTimeoutMs } from "./connect.ts";
import { watchConnection } from "./connection-watch.ts";
import { type Reading, readStream } from "./read-stream.ts";
import { streamPosition } from "./streams.ts";

/**
 * Follows a bucket whose entries stand each for itself: all newest values, and then each change as it
 * comes. Nothing is missed while following; when anything is out of the ordinary it starts again with
 * all newest values, and between the two the follower keeps what it has. A bucket that is not there is
 * waited for.
 */
export type BucketEntry = {
  /** Without the bucket's own prefix. */
  key: string;
  payload: Uint8Array;
  /** What a writer must name to write over this value. */
  revision: number;
};

export type FollowedBucket = {
  /** True while everything that the bucket holds has been handed over, as far as one can know. */
  isCurrent(): boolean;
  isConnected(): boolean;
  stop(): Promise<void>;
};

const retryDelayMs = 250;
/** How soon a bucket that was deleted and made anew is noticed. */
const identityCheckIntervalMs = 1_000;

export function followBucket(options: {
  connection: NatsConnection;
  bucket: { streamName: string; subjectPrefix: string };
  /** Which keys, as a filter of subjects: `edge.*`. */
  filter: string;
  onEntry(entry: BucketEntry): void;
  /** Everything from here on is read anew; what it lacks is gone. */
  onBegin?(): void;
  /** All newest values have been handed over. */
  onCaughtUp?(): void;
  logger: Logger;
}): FollowedBucket {
  const { connection, bucket } = options;
  const logger = options.logger.child({ bucket: bucket.streamName });
  const stopping = new AbortController();
  let reading: Reading | undefined;
  let current = false;
  let lastReason: string | undefined;

  const watch = watchConnection(connection, () => {
    current = false;
    reading?.stop("the connection to NATS was lost");
  });

  async function run(): Promise<void> {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    while (!stopping.signal.aborted && !connection.isClosed()) {
      const reason = await followOnce(manager).catch((error: Error) => error.message);
      current = false;
      if (stopping.signal.aborted) return;
      if (reason !== lastReason) logger.warn({ reason }, "following the bucket was interrupted");
      lastReason = reason;
      await pause(retryDelayMs, stopping.signal);
      await watch.connected(stopping.signal);
    }
  }

  /** Follows until something is out of the ordinary; answers what it was. */
  async function followOnce(manager: JetStreamManager): Promise<string> {
    const created = (await streamPosition(manager, bucket.streamName))?.createdAt;
    if (created === undefined) return "the bucket is not there yet";
    options.onBegin?.();
    reading = await readStream({
      connection,
      manager,
      stream: bucket.streamName,
      filter: bucket.subjectPrefix + options.filter,
      from: "last-per-subject",
      onMessage: ({ subject, payload, sequence }) =>
        options.onEntry({
          key: subject.slice(bucket.subjectPrefix.length),
          payload,
          revision: sequence,
        }),
    });
    const over = new AbortController();
    try {
      // Whoever stopped it meanwhile could not stop this reading yet.
      if (stopping.signal.aborted) return "stopped";
      const failure = await Promise.race([reading.caughtUp, reading.ended]);
      if (failure !== undefined) return failure;
      current = true;
      lastReason = undefined;
      options.onCaughtUp?.();
      return await Promise.race([reading.ended, replaced(manager, created, over.signal)]);
    } finally {
      over.abort();
      reading.stop("the reading is over");
    }
  }

  /**
   * Resolves when the bucket is another one than that which is read. An answer that does not come says
   * nothing about the bucket, and its entries go on coming meanwhile: it is asked for again.
   */
  async function replaced(
    manager: JetStreamManager,
    created: string,
    over: AbortSignal,
  ): Promise<string> {
    let isAnswered = true;
    while (await pause(identityCheckIntervalMs, over)) {
      try {
        const position = await streamPosition(manager, bucket.streamName);
        if (position?.createdAt !== created) return "the bucket was deleted or made anew";
        isAnswered = true;
      } catch (err) {
        if (isAnswered && !over.aborted)
          logger.warn({ err }, "whether the bucket is still the same is not answered; asked again");
        isAnswered = false;
      }
    }
    return "the reading is over";
  }

  const running = run();
  return {
    isCurrent: () => current,
    isConnected: watch.isConnected,
    async stop() {
      stopping.abort();
      reading?.stop("stopped");
      await running;
      watch.stop();
    },
  };
}
