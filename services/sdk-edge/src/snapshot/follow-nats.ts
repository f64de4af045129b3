import type { KeyDirectory } from "@halyard/api-keys";
import { everythingFilter, type SnapshotEntry } from "@halyard/contracts";
import { type FollowedSnapshot, followSnapshot, type SnapshotRead } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { DiskCache } from "./disk-cache.ts";
import { buildSnapshot } from "./reduce.ts";
import { type AppliedReports, reportApplied } from "./report-applied.ts";
import type { SnapshotHolder } from "./snapshot-holder.ts";

/**
 * Feeds the holder from NATS for as long as the process lives. An edge with a cache on disk reads only what has
 * changed since the cache was written. When nothing has arrived shortly after the start, the edge serves the
 * cache as it is, until NATS is available.
 */
export type FollowedNats = {
  /** Entries that did not fit their schema, so far. */
  rejectedEntries(): number;
  stop(): Promise<void>;
};

/** NATS that is there takes a connection at once; nobody should wait much longer for old flags. */
const connectPatienceMs = 1_500;
/** A large snapshot takes a second or two to arrive. */
const readPatienceMs = 3_000;

/** How exactly it is known since when NATS is away. */
const confirmIntervalMs = 250;

export function followNats(options: {
  connection: Promise<NatsConnection>;
  /** Identifies this process in its reports to management. */
  edge: string;
  holder: SnapshotHolder;
  cache: DiskCache | undefined;
  /** Verifies the entries of API keys. It is kept in step with the holder. */
  keys: KeyDirectory;
  logger: Logger;
}): FollowedNats {
  const { holder, cache, keys, logger } = options;
  let rejected = 0;
  let followed: FollowedSnapshot | undefined;
  let reports: AppliedReports | undefined;
  let stopped = false;
  let isConnected = false;
  /** The content of the cache, until the snapshot is current for the first time. */
  let caching = cache?.read();

  const confirming = setInterval(() => {
    if (followed?.isCurrent() === true) holder.confirmCurrent();
  }, confirmIntervalMs).unref();

  let fallingBack = setTimeout(() => {
    if (!isConnected) fallBack();
    else fallingBack = setTimeout(fallBack, readPatienceMs - connectPatienceMs).unref();
  }, connectPatienceMs).unref();

  function fallBack(): void {
    if (holder.snapshot !== undefined) return;
    logger.warn({ cache: cache !== undefined }, "NATS has not brought the snapshot yet");
    void caching?.then((cached) => {
      if (cached === undefined) return;
      const { epoch, entries, currentAtMs } = cached;
      holder.restore({ snapshot: buildSnapshot(epoch, entries), currentAtMs });
    });
  }

  function apply(entry: SnapshotEntry): void {
    if (keys.accepts(entry)) holder.apply(entry);
  }

  function beginRead(): SnapshotRead {
    const read = holder.beginRead();
    return { take: (entry) => read.take(keys.choose(entry)), finish: read.finish };
  }

  async function follow(): Promise<void> {
    const connection = await options.connection;
    isConnected = true;
    if (stopped) return;
    reports = reportApplied({
      connection,
      edge: options.edge,
      holder,
      isCurrent: () => followed?.isCurrent() ?? false,
    });
    await reports.announced;
    let cached = await caching;
    if (stopped) return;
    followed = followSnapshot({
      connection,
      filter: everythingFilter,
      logger,
      held: cached?.held,
      follower: {
        beginRead,
        resume(epoch, entries) {
          if (holder.source === "nats") entries.forEach(apply);
          else holder.replace(epoch, (cached?.entries ?? []).concat(entries));
        },
        current() {
          caching = cached = undefined;
        },
        apply,
        isGenuineComplete: keys.isGenuineComplete,
        isGenuineDeletion: keys.isGenuineDeletion,
        reached: holder.reached,
        rejected: (key, problem) => {
          rejected += 1;
          logger.error({ key, problem }, "an entry of the snapshot was left out");
        },
      },
    });
  }

  // While NATS is away this goes on trying. What it throws is beyond mending and ends the process.
  void follow();

  return {
    rejectedEntries: () => rejected,
    async stop() {
      stopped = true;
      clearInterval(confirming);
      clearTimeout(fallingBack);
      reports?.stop();
      await followed?.stop();
    },
  };
}
