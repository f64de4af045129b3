/**
 * Decides when the rows of deleted scopes are removed.
 *
 * A tombstone that arrives while following is due immediately. A tombstone that a read found is due some time after the
 * next write to the snapshot (see `removeOfDeletedScopes`).
 */
export class Tombstones {
  /** Removals by the id of the scope. */
  readonly #removals = new Map<string, Removal>();
  readonly #found = new Set<string>();
  /** Revision that a later write must exceed. It is read after the newest tombstone was found. */
  #foundAt: number | "reading" | undefined;

  /** Adds a tombstone that arrived while following. */
  addArrived(id: string, nowMs: number): void {
    this.#found.delete(id);
    this.#removals.set(id, { id, dueMs: nowMs, isRepeated: false });
  }

  /** Adds a tombstone that a read found. */
  addFound(id: string): void {
    this.#removals.delete(id);
    this.#found.add(id);
    this.#foundAt = undefined;
  }

  /** Postpones every removal until the leader has compared its database with the snapshot. */
  countAsFound(): void {
    for (const id of this.#removals.keys()) this.addFound(id);
  }

  hasFound(): boolean {
    return this.#found.size > 0;
  }

  due(nowMs: number): Removal[] {
    return [...this.#removals.values()].filter(({ dueMs }) => dueMs <= nowMs);
  }

  /** Reports that the caller begins to read the revision of the snapshot. */
  readingRevision(): void {
    this.#foundAt ??= "reading";
  }

  /** Schedules removals for the found tombstones if the leader has written to the snapshot since they were found. */
  confirmFound(revision: number, nowMs: number): void {
    if (this.#foundAt === "reading") this.#foundAt = revision;
    // If there is no value, another tombstone was found while the revision was read.
    if (this.#foundAt === undefined || revision <= this.#foundAt) return;
    const dueMs = nowMs + foundDelayMs;
    for (const id of this.#found) this.#removals.set(id, { id, dueMs, isRepeated: false });
    this.#found.clear();
  }

  /** Reports that rows were removed. Each removal is repeated once. */
  removed(done: readonly Removal[], nowMs: number): void {
    for (const removal of done) {
      const { id } = removal;
      // Another tombstone may have replaced it meanwhile.
      if (this.#removals.get(id) !== removal) continue;
      if (removal.isRepeated) this.#removals.delete(id);
      else this.#removals.set(id, { id, dueMs: nowMs + repeatAfterMs, isRepeated: true });
    }
  }
}

export type Removal = { id: string; dueMs: number; isRepeated: boolean };

/** Delay of a found tombstone after the leader's first write. The leader rebuilds a snapshot within seconds. */
const foundDelayMs = 30_000;

/**
 * Delay of the second removal. A request that was authenticated before the deletion may write after the first removal,
 * and no request takes this long.
 */
const repeatAfterMs = 60_000;
