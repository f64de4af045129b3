import { isDeepStrictEqual } from "node:util";
import type { SnapshotEntry } from "@halyard/contracts";
import { emptySnapshot, entriesOf, entryAt, type Snapshot } from "./snapshot.ts";
import { type ChangedIds, changedBetween, put, takeEntries } from "./take-entries.ts";

/**
 * A full read that is under way. The held snapshot stays as it is until the read is finished. An entry that
 * equals the held one becomes that very object, and what was received for it is garbage at once; so a read
 * that brings little needs little memory beside the held snapshot.
 */
export type FullRead = {
  take(entry: SnapshotEntry): void;
  /** Takes the entries of the read in place of the held ones. Nothing is taken afterwards. */
  finish(
    held: Snapshot | undefined,
    facts: { epoch: string; followedUntilNow: boolean },
  ): { snapshot: Snapshot; changed: ChangedIds };
};

export function beginFullRead(held: Snapshot | undefined): FullRead {
  const read = emptySnapshot("");
  return {
    take(entry) {
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
 * Takes a snapshot that was read in place of the held one.
 *
 * Another epoch means that everything was written again, perhaps from an older state of the database,
 * so held versions mean nothing: only the read counts.
 *
 * Under the same epoch the newest version of an entry stays, held or read. An entry that the read lacks
 * is dropped, unless `followedUntilNow` says that it was held from following this very bucket a short
 * while ago: a deletion leaves an entry that is kept for days, so a missing entry was lost by the broker
 * and will be written again.
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
