import { isDeepStrictEqual } from "node:util";
import type { SnapshotEntry } from "@halyard/contracts";
import { decoded } from "./audience-chunk.ts";
import {
  type ChangedIds,
  changedBetween,
  emptySnapshot,
  entriesOf,
  entryAt,
  put,
  type Snapshot,
  takeEntries,
} from "./snapshot.ts";

/**
 * A full read in progress. The held snapshot does not change until the read finishes. The read keeps the held object of
 * an entry that is equal, and discards the received one. A read with few changes therefore needs little memory beside
 * the held snapshot.
 */
type FullRead = {
  take(entry: SnapshotEntry): void;
  /** Replaces the held entries by those of the read. No entry may be taken afterwards. */
  finish(
    held: Snapshot | undefined,
    facts: { epoch: string; followedUntilNow: boolean },
  ): { snapshot: Snapshot; changed: ChangedIds };
};

export function beginFullRead(held: Snapshot | undefined): FullRead {
  // An organization whose plan is unknown keeps its limits.
  const read = { ...emptySnapshot(""), limits: new Map(held?.limits) };
  return {
    take(received) {
      const entry = decoded(received);
      const before = held && entryAt(held, entry.address);
      const isHeld =
        before?.value.version === entry.value.version &&
        isDeepStrictEqual(before.value, entry.value);
      put(read, isHeld ? before : entry);
    },
    finish: (present, { epoch, followedUntilNow }) =>
      replaceSnapshot(present, { ...read, epoch }, { followedUntilNow }),
  };
}

/**
 * Replaces the held snapshot by one that was read.
 *
 * A different epoch means that everything was written again, possibly from an older state of the database. Held
 * versions are then not comparable, and only the read counts.
 *
 * With the same epoch, the newest version of each entry stays. A held entry that the read lacks is removed, unless
 * `followedUntilNow` is true: then the entry came from following this bucket until a short time ago. A deletion leaves
 * an entry for days, so the broker has lost the missing entry, and it will be written again.
 */
export function replaceSnapshot(
  held: Snapshot | undefined,
  read: Snapshot,
  { followedUntilNow }: { followedUntilNow: boolean },
): { snapshot: Snapshot; changed: ChangedIds } {
  if (held?.epoch === read.epoch) {
    if (followedUntilNow)
      return { snapshot: held, changed: takeEntries(held, entriesOf(read)).changed };
    for (const entry of entriesOf(held)) if (entryAt(read, entry.address)) put(read, entry);
  }
  return { snapshot: read, changed: changedBetween(held, read) };
}
