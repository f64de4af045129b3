import { followDirectory as followParts, type KeyDirectory } from "@halyard/api-keys";
import { everythingFilter, isEntryOf, parseEntryKey, type SnapshotEntry } from "@halyard/contracts";
import type { FollowedSnapshot, SnapshotPart } from "@halyard/jetstream";
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
  deletedEnvironments: SnapshotPart;
  onFlagsGone: OnFlagsGone;
  logger: Logger;
}): FollowedSnapshot {
  const { deletedEnvironments, flags, onFlagsGone } = options;
  return followParts({
    ...options,
    filter: everythingFilter,
    parts: [deletedEnvironments, partOfFlags(flags, onFlagsGone)],
    onCurrent: onFlagsGone.current,
  });
}

function partOfFlags(flags: FlagDirectory, onFlagsGone: OnFlagsGone): SnapshotPart {
  /** Returns the flag that this entry deletes. */
  function apply(entry: SnapshotEntry): FlagPlace | undefined {
    if (!isEntryOf("flag", entry)) return undefined;
    const { address, value } = entry;
    return flags.apply(address, value) && "deleted" in value ? address : undefined;
  }

  return {
    beginReplacing() {
      const { take, finish } = flags.beginReplacing();
      return {
        take: (entry) => isEntryOf("flag", entry) && take(entry.address, entry.value),
        finish,
      };
    },
    apply(entry) {
      const deleted = apply(entry);
      if (deleted !== undefined) onFlagsGone.deleted(deleted);
    },
    // A restored database can have flags whose tombstones a reader reads here. `current` follows, and starts
    // the looks, which wait for the rebuild.
    resume: apply,
    rejected(key) {
      const address = parseEntryKey(key);
      if (address?.kind === "flag") flags.unreadable(address);
    },
  };
}
