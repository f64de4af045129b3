import { keysAndScopesFilter } from "@halyard/contracts";
import { type FollowedSnapshot, followSnapshot, type SnapshotPart } from "@halyard/snapshot";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { KeyDirectory } from "./key-directory.ts";

/**
 * Keeps the API keys, and the other parts of the snapshot that a service uses, up to date. The key directory verifies
 * the signatures of the entry `complete`, of API keys, of the plans and of deletions.
 */
export function followDirectory(options: {
  connection: NatsConnection;
  /** By default, the entries of API keys, environments and projects. */
  filter?: string;
  keys: KeyDirectory;
  parts?: readonly SnapshotPart[];
  /** Called when all parts are up to date, at the start and after every interruption. */
  onCurrent?: () => void;
  logger: Logger;
}): FollowedSnapshot {
  const { connection, filter = keysAndScopesFilter, keys, logger } = options;
  const parts: readonly SnapshotPart[] = [keys, ...(options.parts ?? [])];
  return followSnapshot({
    connection,
    filter,
    logger,
    follower: {
      beginRead() {
        const reads = parts.map((part) => part.beginReplacing());
        return {
          take: (entry) => {
            for (const read of reads) read.take(entry);
          },
          finish: () => {
            for (const read of reads) read.finish();
          },
        };
      },
      apply: (entry) => {
        for (const part of parts) part.apply(entry);
      },
      resume(_epoch, entries) {
        for (const entry of entries) for (const part of parts) (part.resume ?? part.apply)(entry);
      },
      isGenuineComplete: keys.isGenuineComplete,
      isGenuine: keys.isGenuine,
      current: () => options.onCurrent?.(),
      rejected: (key, problem) =>
        logger.error({ key, problem }, "an entry of the snapshot does not match its schema"),
    },
  });
}
