import { haveEqualContent, type KeySignatures } from "@halyard/api-keys";
import {
  type EntryOf,
  entryKey,
  isEntryOf,
  type KeyEntry,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import type { SnapshotHolder } from "./snapshot-holder.ts";

/**
 * Keeps forged entries of API keys from replacing genuine ones. The holder keeps the highest version, so a forged
 * entry would also keep out genuine ones that follow. Keys that are new to this edge pass: their signatures are
 * verified when they are first used.
 */
export type GenuineKeys = {
  /** Returns whether the holder may apply a change. */
  accepts(entry: SnapshotEntry): boolean;
  /** Returns the entry of a full read, or in its place the held one. */
  choose(entry: SnapshotEntry): SnapshotEntry;
};

/** The holder adds members to deletions, and of a deletion only the version matters. */
const isSame = (held: KeyEntry | Tombstone, other: KeyEntry | Tombstone) =>
  "deleted" in held && "deleted" in other
    ? held.version === other.version
    : haveEqualContent(held, other);

export function createGenuineKeys(
  holder: Pick<SnapshotHolder, "snapshot">,
  signatures: KeySignatures,
): GenuineKeys {
  const isGenuine = ({ address, value }: EntryOf<"key">) =>
    signatures.isGenuine(entryKey(address), value);

  return {
    accepts(entry) {
      if (!isEntryOf("key", entry)) return true;
      const { address, value } = entry;
      const held = holder.snapshot?.keys.get(address.keyId);
      return value.version > (held?.version ?? 0) && isGenuine(entry);
    },
    choose(entry) {
      if (!isEntryOf("key", entry)) return entry;
      const { address, value } = entry;
      const held = holder.snapshot?.keys.get(address.keyId);
      if (held === undefined || isSame(held, value)) return entry;
      return isGenuine(entry) ? entry : { address, value: held };
    },
  };
}
