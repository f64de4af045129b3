import {
  checkEntry,
  completeKey,
  type EntryAddress,
  type LiveEntry,
  parseEntryKey,
  type SnapshotRevision,
  snapshotBucket,
  type Tombstone,
} from "@halyard/contracts";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { apiTimeoutMs } from "./connect.ts";
import { parseJson } from "./parse-json.ts";
import { readEpoch } from "./read-epoch.ts";
import { type Reading, readStream, type StreamMessage } from "./read-stream.ts";
import { streamPosition } from "./streams.ts";

/**
 * Follows the snapshot. It reads all newest values, hands them over as one whole, and then hands over
 * each change as it comes. When anything is out of the ordinary it starts again with a full read;
 * until that is complete, the follower keeps what it has.
 *
 * A read counts only if the bucket says that it is complete, with the same epoch before and after it.
 * The epoch is looked at again every second: a bucket that was deleted, emptied or written anew is
 * noticed even where the broker says nothing.
 */
export type SnapshotEntry = { address: EntryAddress; value: LiveEntry | Tombstone };

export type SnapshotFollower = {
  /** All entries, after a full read. What is not among them does not exist. */
  replace(epoch: string, entries: readonly SnapshotEntry[]): void;
  /** One entry as it is now. Entries may repeat or come late: versions decide. */
  apply(entry: SnapshotEntry): void;
  /** An entry that does not fit its schema was left out. */
  rejected(key: string, problem: string): void;
  /**
   * Every entry up to this revision was handed over. Called after `replace`, and after each later message,
   * also one without an entry for this follower.
   */
  reached?(revision: SnapshotRevision): void;
};

export type FollowedSnapshot = {
  /** True while everything that JetStream holds has been handed over, as far as one can know. */
  isCurrent(): boolean;
  /** Resolves after the first full read. */
  ready: Promise<void>;
  stop(): Promise<void>;
};

const epochCheckIntervalMs = 1_000;
/** How long to wait before the next try while the snapshot cannot be read. */
const retryDelayMs = 250;

export function followSnapshot(options: {
  connection: NatsConnection;
  filter: string;
  follower: SnapshotFollower;
  logger: Logger;
}): FollowedSnapshot {
  const { connection, logger } = options;
  const ready = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<"stopped">();
  let stopping = false;
  let current = false;
  let reading: Reading | undefined;
  let reconnected: PromiseWithResolvers<void> | undefined;

  async function run(): Promise<void> {
    const manager = await jetstreamManager(connection, {
      checkAPI: false,
      timeout: apiTimeoutMs,
    });
    let lastReason = "";
    while (!stopping) {
      const reason = await followOnce(manager).catch((error: Error) => error.message);
      current = false;
      if (stopping) return;
      if (reason !== lastReason) logger.warn({ reason }, "following the snapshot was interrupted");
      lastReason = reason;
      await pause(retryDelayMs, stopped.promise);
      // What is asked of a broker that is away gets lost, and its time-out would outlast the outage.
      await Promise.race([reconnected?.promise, stopped.promise]);
    }
  }

  /** Reads all, then follows, until something is out of the ordinary; answers what it was. */
  async function followOnce(manager: JetStreamManager): Promise<string> {
    // A stream that is not there leaves the question for its epoch unanswered until the time-out.
    if ((await streamPosition(manager, snapshotBucket.streamName)) === undefined)
      return "the snapshot is not there yet";
    const epoch = await readEpoch(manager);
    if (epoch === undefined) return "the snapshot is not complete yet";
    let gathered: SnapshotEntry[] | undefined = [];
    let revision = 0;
    reading = await readStream({
      connection,
      manager,
      stream: snapshotBucket.streamName,
      filter: snapshotBucket.subjectPrefix + options.filter,
      from: "last-per-subject",
      onMessage: (message) => {
        const entry = decode(message, options.follower);
        revision = message.sequence;
        if (gathered === undefined) handOver(options.follower, entry, { epoch, revision });
        else if (entry !== undefined) gathered.push(entry);
      },
    });
    try {
      const failure = await Promise.race([reading.caughtUp, reading.ended]);
      if (failure !== undefined) return failure;
      if ((await readEpoch(manager)) !== epoch)
        return "the snapshot was written anew while it was read";
      options.follower.replace(epoch, gathered);
      gathered = undefined;
      current = true;
      options.follower.reached?.({ epoch, revision });
      ready.resolve();
      logger.info({ epoch }, "following the snapshot");
      return await watchEpoch(manager, reading, epoch);
    } finally {
      reading.stop("the reading is over");
    }
  }

  async function stopReadingOnDisconnect(): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type === "reconnect") reconnected?.resolve();
      if (status.type !== "disconnect") continue;
      reconnected = Promise.withResolvers();
      current = false;
      reading?.stop("the connection to NATS was lost");
    }
  }

  void stopReadingOnDisconnect();
  const running = run();
  return {
    isCurrent: () => current,
    ready: ready.promise,
    stop: async () => {
      stopping = true;
      stopped.resolve("stopped");
      reading?.stop("stopped");
      await running;
    },
  };
}

function handOver(
  follower: SnapshotFollower,
  entry: SnapshotEntry | undefined,
  revision: SnapshotRevision,
): void {
  if (entry !== undefined) follower.apply(entry);
  follower.reached?.(revision);
}

/** Lets the reading go on until it ends or the snapshot is another one; answers which. */
async function watchEpoch(
  manager: JetStreamManager,
  open: Reading,
  epoch: string,
): Promise<string> {
  for (;;) {
    const ended = await pause(epochCheckIntervalMs, open.ended);
    if (ended !== undefined) return ended;
    const looked = readEpoch(manager).then((found) => ({ found }));
    const outcome = await Promise.race([open.ended, looked]);
    if (typeof outcome === "string") return outcome;
    if (outcome.found !== epoch) return "the snapshot was deleted or written anew";
  }
}

function decode(message: StreamMessage, follower: SnapshotFollower): SnapshotEntry | undefined {
  const key = message.subject.slice(snapshotBucket.subjectPrefix.length);
  if (key === completeKey) return undefined;
  const address = parseEntryKey(key);
  // A newer management may keep kinds of entries that this version has no use for.
  if (address === undefined) return undefined;
  const checked = checkEntry(address.kind, parseJson(message.payload));
  if (checked.ok) return { address, value: checked.value };
  follower.rejected(key, checked.problem);
  return undefined;
}

/** Waits; a result of `until` ends the wait early and is returned. */
async function pause<T>(delayMs: number, until: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, delayMs, undefined);
  });
  const result = await Promise.race([until, timeUp]);
  clearTimeout(timer);
  return result;
}
