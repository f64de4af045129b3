/**
 * Decides when the rows of deleted places are removed.
 *
 * A tombstone that arrives while following is due immediately. One that a read found is due some time after the first
 * write to the snapshot since then (see `removeOfDeletedScopes`).
 */
export class Tombstones {
  /** The removals by the id of the place. */
  readonly #removals = new Map<string, Removal>();
  readonly #found = new Set<string>();
  /** The revision that a later write must exceed. It is read after the newest found tombstone. */
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

  /** The caller begins to read the revision of the snapshot. */
  readingRevision(): void {
    this.#foundAt ??= "reading";
  }

  /** Schedules removals for the found tombstones once the leader has written to the snapshot after they were found. */
  confirmFound(revision: number, nowMs: number): void {
    if (this.#foundAt === "reading") this.#foundAt = revision;
    // Without a value, another tombstone was found while the revision was read.
    if (this.#foundAt === undefined || revision <= this.#foundAt) return;
    const dueMs = nowMs + foundDelayMs;
    for (const id of this.#found) this.#removals.set(id, { id, dueMs, isRepeated: false });
    this.#found.clear();
  }

  /** The rows are removed. Each removal is repeated once. */
  removed(done: readonly Removal[], nowMs: number): void {
    for (const removal of done) {
      const { id } = removal;
      // Another tombstone has replaced it meanwhile.
      if (this.#removals.get(id) !== removal) continue;
      if (removal.isRepeated) this.#removals.delete(id);
      else this.#removals.set(id, { id, dueMs: nowMs + repeatAfterMs, isRepeated: true });
    }
  }
}

export type Removal = { id: string; dueMs: number; isRepeated: boolean };

/** The time from the leader's first write until a found tombstone counts. The leader rebuilds a snapshot within seconds. */
const foundDelayMs = 30_000;

/**
 * A request that was authenticated before the deletion may write after the first removal. This is longer than any
 * request takes.
 */
const repeatAfterMs = 60_000;
