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
  /** A full read of an epoch has ended. Flags that the directory lacks may be deleted. */
  readAnew(epoch: string): void;
};

export function followDirectory(options: {
  connection: NatsConnection;
  keys: KeyDirectory;
  flags: FlagDirectory;
  onFlagsGone: OnFlagsGone;
  logger: Logger;
}): FollowedSnapshot {
  const { keys, flags, onFlagsGone, logger } = options;
  /** Since the last full read; those of a read that was broken off are among them, which does no harm. */
  let unreadable: FlagPlace[] = [];
  return followSnapshot({
    connection: options.connection,
    filter: everythingFilter,
    logger,
    follower: {
      replace(epoch, entries) {
        keys.replace(
          entries.flatMap(({ address, value }) =>
            address.kind === "key" ? [[address.keyId, value as KeyEntry | Tombstone] as const] : [],
          ),
        );
        flags.replace(
          entries.flatMap(({ address, value }) =>
            address.kind === "flag" ? [[address, value as FlagEntry | Tombstone] as const] : [],
          ),
          unreadable,
        );
        unreadable = [];
        onFlagsGone.readAnew(epoch);
      },
      apply({ address, value }) {
        if (address.kind === "key") keys.apply(address.keyId, value as KeyEntry | Tombstone);
        if (address.kind !== "flag") return;
        const entry = value as FlagEntry | Tombstone;
        if (flags.apply(address, entry) && "deleted" in entry) onFlagsGone.deleted(address);
      },
      rejected(key, problem) {
        const address = parseEntryKey(key);
        if (address?.kind === "flag") unreadable.push(address);
        logger.error({ key, problem }, "an entry of the snapshot was left out");
      },
    },
  });
}
