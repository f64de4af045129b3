import { tombstoneLifetimeMs } from "@halyard/contracts";

/**
 * Maps in which the newest version of an entry wins, in whatever order the entries come. A deletion is
 * an entry too: while it is remembered, nothing older can take its place.
 *
 * The maps themselves are never changed. A draft copies one at the first entry that changes it, so a
 * whole read and a single change take the same way, and each costs what it must.
 */
export type Stamped = { version: number; committed_at: string };

export type NewestWins<E extends Stamped> = ReadonlyMap<string, E>;

export type DraftOf<E extends Stamped> = {
  /** Takes an entry unless the same or a newer one is held. Answers whether it was taken. */
  put(id: string, entry: E): boolean;
  /** The entry that is held under an id. */
  get(id: string): E | undefined;
  /** The map that has come about; the original itself if nothing was taken. */
  finish(): NewestWins<E>;
};

export function draftOf<E extends Stamped>(original: NewestWins<E>): DraftOf<E> {
  let copy: Map<string, E> | undefined;
  return {
    put(id, entry) {
      const held = (copy ?? original).get(id);
      if (held !== undefined && held.version >= entry.version) return false;
      copy ??= withoutOldDeletions(original, entry.committed_at);
      copy.set(id, entry);
      return true;
    },
    get: (id) => (copy ?? original).get(id),
    finish: () => copy ?? original,
  };
}

/**
 * What is to be held after everything was read anew, under the same epoch as before: the newest of
 * what was held and what was read. The broker may have lost its last writes in a crash, and what it
 * forgot is still true. `keepMissing` says what becomes of entries that the read lacks altogether.
 * Where nothing differs, the answer is the very map that was held.
 */
export function settle<E extends Stamped>(
  held: NewestWins<E>,
  read: NewestWins<E>,
  { keepMissing }: { keepMissing: boolean },
): NewestWins<E> {
  const settled = new Map<string, E>();
  let differs = false;
  for (const [id, entry] of read) {
    const before = held.get(id);
    const keep = before !== undefined && before.version >= entry.version;
    settled.set(id, keep ? before : entry);
    if (!keep) differs = true;
  }
  for (const [id, entry] of held) {
    if (read.has(id)) continue;
    if (keepMissing) settled.set(id, entry);
    else differs = true;
  }
  return differs ? settled : held;
}

/**
 * A copy, without the deletions that nobody needs to remember any more. Their age is measured by the
 * change at hand, so that no clock is needed and memory stays bounded without a timer.
 */
function withoutOldDeletions<E extends Stamped>(
  entries: NewestWins<E>,
  committedAt: string,
): Map<string, E> {
  const forgottenBefore = Date.parse(committedAt) - tombstoneLifetimeMs;
  const copy = new Map<string, E>();
  for (const [id, entry] of entries) {
    if ("deleted" in entry && Date.parse(entry.committed_at) < forgottenBefore) continue;
    copy.set(id, entry);
  }
  return copy;
}
