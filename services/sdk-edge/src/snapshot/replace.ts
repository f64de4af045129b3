import { type Changed, changedBetween } from "./changed.ts";
import { buildSnapshot, type Entry, reduce } from "./reduce.ts";
import { entryAt, type Snapshot } from "./snapshot.ts";

/**
 * Takes the entries of a full read in place of the held ones.
 *
 * Another epoch means that everything was written again, perhaps from an older state of the database,
 * so held versions mean nothing: only the read counts.
 *
 * Under the same epoch the newest version of an entry stays, held or read. An entry that the read lacks
 * is dropped, unless `followedUntilNow` says that it was held from following this very bucket a short
 * while ago: a deletion leaves an entry that is kept for days, so a missing entry was lost by the broker
 * and will be written again.
 *
 * Entries that did not change stay the same objects, so a full read that brings little needs little
 * memory beside its own entries.
 */
export function replaceSnapshot(
  held: Snapshot | undefined,
  read: { epoch: string; entries: Iterable<Entry> },
  { followedUntilNow }: { followedUntilNow: boolean },
): { snapshot: Snapshot; changed: Changed } {
  const { epoch, entries } = read;
  if (held?.epoch === epoch && followedUntilNow)
    return { snapshot: held, changed: reduce(held, entries).changed };
  const known = held?.epoch === epoch ? newestOf(held, entries) : entries;
  const snapshot = buildSnapshot(epoch, known);
  return { snapshot, changed: changedBetween(held, snapshot) };
}

/** Each entry that was read, or the held one if that is as new. */
function* newestOf(held: Snapshot, entries: Iterable<Entry>): Generator<Entry> {
  for (const { address, value } of entries) {
    const before = entryAt(held, address);
    const isHeld = before !== undefined && before.version >= value.version;
    yield isHeld ? { address, value: before } : { address, value };
  }
}
