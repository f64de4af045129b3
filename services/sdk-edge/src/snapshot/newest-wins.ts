import { tombstoneLifetimeMs } from "@halyard/contracts";

export type Stamped = { version: number; committed_at: string };

/**
 * A map that keeps the newest version of each entry, regardless of the order of arrival. A deletion is also an entry:
 * while it is kept, no older version can replace it.
 *
 * The map changes in place, because copying it for each change would cost as much as all of its entries. Readers get it
 * as a `ReadonlyMap`.
 */
export class NewestWins<E extends Stamped> extends Map<string, E> {
  /** Ids of deleted entries in the order of arrival; undefined before the first. */
  #deletions: Set<string> | undefined;

  /** Stores an entry unless the same or a newer version is stored. Returns whether it was stored. */
  put(id: string, entry: E): boolean {
    const held = this.get(id);
    if (held !== undefined && held.version >= entry.version) return false;
    this.set(id, entry);
    this.#deletions?.delete(id);
    if ("deleted" in entry) {
      this.#deletions ??= new Set();
      this.#deletions.add(id);
    }
    this.#forgetDeletions(entry.committed_at);
    return true;
  }

  /**
   * Removes the deletions that are older than their lifetime. Their age is measured by the time of the current change,
   * so that memory stays bounded without a clock or a timer.
   */
  #forgetDeletions(committedAt: string): void {
    if (this.#deletions === undefined) return;
    const forgottenBefore = Date.parse(committedAt) - tombstoneLifetimeMs;
    for (const id of this.#deletions) {
      const deletion = this.get(id);
      if (deletion !== undefined && Date.parse(deletion.committed_at) >= forgottenBefore) return;
      this.#deletions.delete(id);
      this.delete(id);
    }
  }
}
