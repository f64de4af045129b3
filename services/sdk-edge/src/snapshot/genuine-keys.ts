import { haveEqualContent, type KeySignatures } from "@halyard/api-keys";
import { entryKey, type KeyEntry, type Tombstone } from "@halyard/contracts";
import type { Entry } from "./reduce.ts";
import type { SnapshotHolder } from "./snapshot-holder.ts";

/**
 * Keeps forged entries of API keys from replacing genuine ones. The holder keeps the highest version, so a forged
 * entry would also keep out genuine ones that follow. Keys that are new to this edge pass: their signatures are
 * verified when they are first used.
 */
export type GenuineKeys = {
  /** Returns whether the holder may apply a change. */
  accepts(entry: Entry): boolean;
  /** Returns the entry of a full read, or in its place the held one. */
  choose(entry: Entry): Entry;
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
  const isGenuine = ({ address, value }: Entry) =>
    signatures.isGenuine(entryKey(address), value as KeyEntry | Tombstone);

  return {
    accepts(entry) {
      const { address, value } = entry;
      if (address.kind !== "key") return true;
      const held = holder.snapshot?.keys.get(address.keyId);
      return value.version > (held?.version ?? 0) && isGenuine(entry);
    },
    choose(entry) {
      const { address, value } = entry;
      const held = address.kind === "key" ? holder.snapshot?.keys.get(address.keyId) : undefined;
      if (held === undefined || isSame(held, value as KeyEntry | Tombstone)) return entry;
      return isGenuine(entry) ? entry : { address, value: held };
    },
  };
}
