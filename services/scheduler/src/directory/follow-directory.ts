import type { KeyDirectory } from "@halyard/api-keys";
import {
  everythingFilter,
  type FlagEntry,
  type KeyEntry,
  parseEntryKey,
  type Tombstone,
} from "@halyard/contracts";
import { type FollowedSnapshot, followSnapshot } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { FlagDirectory, FlagPlace } from "./flag-directory.ts";

/**
 * Keeps what this service knows of keys and flags in step with the snapshot, and says when flags are
 * gone, so that their schedules can be cancelled.
 */
export type OnFlagsGone = {
  /** A flag was deleted in an environment. */
  deleted(place: FlagPlace): void;
  /** The directory has everything of an epoch, at the start and after every interruption. */
  current(epoch: string): void;
};

export function followDirectory(options: {
  connection: NatsConnection;
  keys: KeyDirectory;
  flags: FlagDirectory;
  onFlagsGone: OnFlagsGone;
  logger: Logger;
}): FollowedSnapshot {
  const { keys, flags, onFlagsGone, logger } = options;
  return followSnapshot({
    connection: options.connection,
    filter: everythingFilter,
    logger,
    follower: {
      beginRead() {
        const [keyRead, flagRead] = [keys.beginReplacing(), flags.beginReplacing()];
        return {
          take({ address, value }) {
            if (address.kind === "key") keyRead.take(address.keyId, value as KeyEntry | Tombstone);
            if (address.kind === "flag") flagRead.take(address, value as FlagEntry | Tombstone);
          },
          finish() {
            keyRead.finish();
            flagRead.finish();
          },
        };
      },
      current: onFlagsGone.current,
      apply({ address, value }) {
        if (address.kind === "key") keys.apply(address.keyId, value as KeyEntry | Tombstone);
        if (address.kind !== "flag") return;
        const entry = value as FlagEntry | Tombstone;
        if (flags.apply(address, entry) && "deleted" in entry) onFlagsGone.deleted(address);
      },
      rejected(key, problem) {
        const address = parseEntryKey(key);
        if (address?.kind === "flag") flags.unreadable(address);
        logger.error({ key, problem }, "an entry of the snapshot was left out");
      },
    },
  });
}
