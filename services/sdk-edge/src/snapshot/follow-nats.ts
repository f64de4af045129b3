import { everythingFilter } from "@halyard/contracts";
import { connectNats, type FollowedSnapshot, followSnapshot } from "@halyard/jetstream";
import type { Logger } from "pino";
import type { DiskCache } from "./disk-cache.ts";
import type { SnapshotHolder } from "./snapshot-holder.ts";

/**
 * Feeds the holder from NATS for as long as the process lives. When NATS has brought nothing shortly
 * after the start, the cache on disk stands in; NATS is tried all the same, and wins when it comes.
 */
export type FollowedNats = {
  /** Entries that did not fit their schema, so far. */
  rejectedEntries(): number;
  stop(): Promise<void>;
};

/** NATS that is there needs well below a second; nobody should wait much longer for old flags. */
const cachePatienceMs = 1_500;

/** How exactly it is known since when NATS is away. */
const confirmIntervalMs = 250;

export function followNats(options: {
  url: string;
  holder: SnapshotHolder;
  cache: DiskCache | undefined;
  logger: Logger;
}): FollowedNats {
  const { url, holder, cache, logger } = options;
  let rejected = 0;
  let followed: FollowedSnapshot | undefined;
  let disconnect: (() => Promise<void>) | undefined;
  let stopped = false;

  const confirming = setInterval(() => {
    if (followed?.isCurrent() === true) holder.confirmCurrent();
  }, confirmIntervalMs).unref();

  const fallingBack = setTimeout(() => {
    if (holder.snapshot !== undefined) return;
    logger.warn({ cache: cache !== undefined }, "NATS has not brought the snapshot yet");
    void cache?.restore();
  }, cachePatienceMs).unref();

  async function follow(): Promise<void> {
    const connection = await connectNats({ url, name: "sdk-edge", logger });
    disconnect = () => connection.close();
    if (stopped) return disconnect();
    followed = followSnapshot({
      connection,
      filter: everythingFilter,
      logger,
      follower: {
        replace: holder.replace,
        apply: holder.apply,
        rejected: (key, problem) => {
          rejected += 1;
          logger.error({ key, problem }, "an entry of the snapshot was left out");
        },
      },
    });
  }

  // While NATS is away this goes on trying, so only a wrong address or missing rights end up here.
  follow().catch((error: unknown) => {
    logger.fatal({ err: error }, "NATS cannot be followed");
    throw error;
  });

  return {
    rejectedEntries: () => rejected,
    async stop() {
      stopped = true;
      clearInterval(confirming);
      clearTimeout(fallingBack);
      await followed?.stop();
      await disconnect?.();
    },
  };
}
