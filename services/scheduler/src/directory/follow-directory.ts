import { type KeyDirectory, passToKeys } from "@halyard/api-keys";
import { everythingFilter, isEntryOf, parseEntryKey, type SnapshotEntry } from "@halyard/contracts";
import { type DeletedPlaces, type FollowedSnapshot, followSnapshot } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { FlagDirectory, FlagPlace } from "./flag-directory.ts";

/**
 * Keeps the directories of keys and flags in step with the snapshot, and reports deleted flags, so that
 * their schedules can be cancelled.
 */
export type OnFlagsGone = {
  /** A flag was deleted in an environment, while the directory was current. */
  deleted(place: FlagPlace): void;
  /** The directory is current, at the start and after every interruption. */
  current(): void;
};

export function followDirectory(options: {
  connection: NatsConnection;
  keys: KeyDirectory;
  flags: FlagDirectory;
  deletedEnvironments: Pick<DeletedPlaces, "apply" | "resume" | "beginReplacing">;
  onFlagsGone: OnFlagsGone;
  logger: Logger;
}): FollowedSnapshot {
  const { keys, flags, deletedEnvironments, onFlagsGone, logger } = options;

  /** Returns the flag that this entry deletes. */
  function apply(entry: SnapshotEntry): FlagPlace | undefined {
    passToKeys(keys, entry);
    if (!isEntryOf("flag", entry)) return undefined;
    const { address, value } = entry;
    return flags.apply(address, value) && "deleted" in value ? address : undefined;
  }

  return followSnapshot({
    connection: options.connection,
    filter: everythingFilter,
    logger,
    follower: {
      beginRead() {
        const [keyRead, flagRead] = [keys.beginReplacing(), flags.beginReplacing()];
        const placeRead = deletedEnvironments.beginReplacing();
        return {
          take(entry) {
            placeRead.take(entry);
            passToKeys(keyRead, entry);
            if (isEntryOf("flag", entry)) flagRead.take(entry.address, entry.value);
          },
          finish() {
            keyRead.finish();
            flagRead.finish();
            placeRead.finish();
          },
        };
      },
      isGenuineComplete: keys.isGenuineComplete,
      isGenuineDeletion: keys.isGenuineDeletion,
      current: onFlagsGone.current,
      // A restored database can have flags whose tombstones a reader reads here. `current` follows, and starts
      // the looks, which wait for the rebuild.
      resume(_epoch, entries) {
        entries.forEach(apply);
        entries.forEach(deletedEnvironments.resume);
      },
      apply(entry) {
        deletedEnvironments.apply(entry);
        const deleted = apply(entry);
        if (deleted !== undefined) onFlagsGone.deleted(deleted);
      },
      rejected(key, problem) {
        const address = parseEntryKey(key);
        if (address?.kind === "flag") flags.unreadable(address);
        logger.error({ key, problem }, "an entry of the snapshot was left out");
      },
    },
  });
}
