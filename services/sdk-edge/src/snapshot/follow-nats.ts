import type { KeyDirectory } from "@halyard/api-keys";
import {
  entryTemplate,
  everythingFilter,
  type SnapshotEntry,
  snapshotBucket,
} from "@halyard/contracts";
import { type FollowedSnapshot, followSnapshot, type SnapshotFollower } from "@halyard/snapshot";
import { startMessaging, type TraceContext } from "@halyard/tracing";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { DiskCache } from "./disk-cache.ts";
import { type AppliedReports, reportApplied } from "./report-applied.ts";
import { buildSnapshot } from "./snapshot.ts";
import type { SnapshotHolder } from "./snapshot-holder.ts";

/**
 * Passes the snapshot from NATS to the holder for as long as the process lives. An edge with a cache on disk reads only
 * the changes since the cache was written. If nothing arrives shortly after the start, the edge serves the cache until
 * NATS is available.
 */
export type FollowedNats = {
  /** Returns the number of entries that did not match their schema. */
  rejectedEntries(): number;
  stop(): Promise<void>;
};

/**
 * Time after which an edge without a connection serves its cache. An available NATS server accepts a connection within
 * milliseconds.
 */
const connectTimeoutMs = 1_500;
/**
 * Time after which an edge with a connection but without a snapshot serves its cache. A large snapshot arrives within a
 * second or two.
 */
const readTimeoutMs = 3_000;

/** Resolution of `stale_seconds`. */
const confirmIntervalMs = 250;

type FollowOptions = {
  connection: Promise<NatsConnection>;
  /** Identifies this process in its reports to management. */
  edge: string;
  holder: SnapshotHolder;
  cache: DiskCache | undefined;
  /** Verifies the entries of API keys. Changed by every update of the holder's snapshot. */
  keys: KeyDirectory;
  logger: Logger;
};

export function followNats(options: FollowOptions): FollowedNats {
  const { holder, cache, logger } = options;
  let rejected = 0;
  let followed: FollowedSnapshot | undefined;
  let reports: AppliedReports | undefined;
  let stopped = false;
  /** The content of the cache, until the snapshot is current for the first time. */
  let cacheRead = cache?.read();

  const confirming = setInterval(() => {
    if (followed?.isCurrent() === true) holder.confirmCurrent();
  }, confirmIntervalMs).unref();

  const fallback = planFallback(() => {
    if (holder.snapshot !== undefined) return;
    logger.warn({ cache: cache !== undefined }, "the snapshot has not arrived from NATS yet");
    void cacheRead?.then((content) => {
      if (content === undefined) return;
      const { epoch, entries, currentAtMs } = content;
      holder.restore({ snapshot: buildSnapshot(epoch, entries), currentAtMs });
    });
  });

  async function follow(): Promise<void> {
    const connection = await options.connection;
    fallback.connected();
    if (stopped) return;
    reports = reportApplied({
      connection,
      edge: options.edge,
      holder,
      isCurrent: () => followed?.isCurrent() ?? false,
    });
    await reports.startReported;
    let cacheContent = await cacheRead;
    if (stopped) return;
    followed = followSnapshot({
      connection,
      filter: everythingFilter,
      logger,
      held: cacheContent?.held,
      follower: {
        ...genuineFollower(options, () => cacheContent?.entries ?? []),
        current() {
          cacheRead = cacheContent = undefined;
        },
        reached: holder.reached,
        rejected: (key, problem) => {
          rejected += 1;
          logger.error({ key, problem }, "an entry of the snapshot does not match its schema");
        },
      },
    });
  }

  // Retries while NATS is unavailable. Any other error is fatal and ends the process.
  void follow();

  return {
    rejectedEntries: () => rejected,
    async stop() {
      stopped = true;
      clearInterval(confirming);
      fallback.cancel();
      reports?.stop();
      await followed?.stop();
    },
  };
}

/** Calls `fallBack` after the time for a connection, or for a full read if there is a connection. */
function planFallback(fallBack: () => void) {
  let isConnected = false;
  let timer = setTimeout(() => {
    if (!isConnected) fallBack();
    else timer = setTimeout(fallBack, readTimeoutMs - connectTimeoutMs).unref();
  }, connectTimeoutMs).unref();
  return {
    connected: () => {
      isConnected = true;
    },
    cancel: () => clearTimeout(timer),
  };
}

/**
 * Creates a follower that passes the genuine entries on to the holder. `entriesOfCache` returns the entries of the
 * cache, from which the follower continues.
 */
function genuineFollower(
  { holder, keys }: Pick<FollowOptions, "holder" | "keys">,
  entriesOfCache: () => readonly SnapshotEntry[],
) {
  function apply(entry: SnapshotEntry, trace?: TraceContext): void {
    if (keys.accepts(entry)) holder.apply(entry, trace && startTaking(entry, trace));
  }

  return {
    apply,
    beginRead() {
      const read = holder.beginRead();
      return { take: (entry) => read.take(keys.choose(entry)), finish: read.finish };
    },
    resume(epoch, entries) {
      if (holder.source === "nats") for (const entry of entries) apply(entry);
      else holder.replace(epoch, entriesOfCache().concat(entries));
    },
    isGenuineComplete: keys.isGenuineComplete,
    isGenuine: keys.isGenuine,
  } satisfies Partial<SnapshotFollower>;
}

/** Begins the span of an entry, which ends when the edge serves it. */
function startTaking({ address }: SnapshotEntry, parent: TraceContext) {
  const destination = snapshotBucket.subjectPrefix + entryTemplate(address.kind);
  return startMessaging("process", { destination, parent });
}
