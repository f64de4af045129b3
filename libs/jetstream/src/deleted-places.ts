import type { EntryAddress, SnapshotEntry } from "@halyard/contracts";
import type { Logger } from "pino";
import type { SnapshotPart } from "./follow-snapshot.ts";

/**
 * Removes the rows that a service stores about deleted projects, environments or organizations. It learns of deletions
 * from the tombstones in the snapshot, which outlive the removal of management's own rows, so a crash or an outage
 * delays the removal and does not prevent it.
 *
 * A tombstone that arrives while following counts immediately. One that was found by a read may be wrong: after a
 * restore of the database, the snapshot has tombstones of what exists again, until management has rebuilt it. Such a
 * tombstone counts some time after the next write to the snapshot. Only the relay's leader writes to it, and the leader
 * begins with the comparison of database and snapshot. Without a leader, nothing is removed.
 *
 * An outage of PostgreSQL may end with an older database. Tombstones whose rows could not be removed then count as found.
 */
export type DeletedPlaces = SnapshotPart & { stop(): Promise<void> };

type PlaceKind = "organization" | "project" | "environment";

/** The time from the leader's first write until a found tombstone counts. The leader rebuilds a snapshot within seconds. */
const foundDelayMs = 30_000;
const lookEveryMs = 1_000;

/**
 * A request that was authenticated before the deletion may write after the first removal. This is longer than any
 * request takes.
 */
const repeatAfterMs = 60_000;

type Pending = { dueMs: number; isRepeated: boolean };

type Tombstones = {
  pending: Map<string, Pending>;
  found: Set<string>;
  /** The revision that a later write must exceed. It is read after the newest found tombstone. */
  foundAt: number | "reading" | undefined;
};

export function removeOfDeletedPlaces(options: {
  kind: PlaceKind;
  /** Returns the revision of the snapshot; undefined if the follower is not current or the snapshot is being rebuilt. */
  settledRevision: () => Promise<number | undefined>;
  /** Removes rows in batches. It can be called again for a place whose rows are gone. */
  remove: (ids: readonly string[], mayGoOn: () => boolean) => Promise<void>;
  isOutage: (error: unknown) => boolean;
  monotonicMs: () => number;
  logger: Logger;
}): DeletedPlaces {
  const { kind, settledRevision, remove, isOutage, monotonicMs, logger } = options;
  let tombstones = noTombstones();
  let isStopping = false;
  let working: Promise<void> | undefined;
  const timer = setInterval(begin, lookEveryMs).unref();

  const deletedId = ({ address, value }: SnapshotEntry) =>
    "deleted" in value ? placeId(address, kind) : undefined;

  async function removeDue(): Promise<void> {
    const present = tombstones;
    const { pending, found } = present;
    const due = [...pending].filter(([, { dueMs }]) => dueMs <= monotonicMs());
    if (due.length === 0 && found.size === 0) return;
    present.foundAt ??= "reading";
    const revision = await settledRevision();
    // A whole read has replaced the tombstones meanwhile.
    if (revision === undefined || present !== tombstones) return;
    confirmFound(present, revision);
    if (due.length === 0) return;
    await remove(
      due.map(([id]) => id),
      () => !isStopping && present === tombstones,
    );
    for (const [id, removed] of due) {
      // Another tombstone has replaced it meanwhile.
      if (pending.get(id) !== removed) continue;
      if (removed.isRepeated) pending.delete(id);
      else pending.set(id, { dueMs: monotonicMs() + repeatAfterMs, isRepeated: true });
    }
  }

  /** Makes found tombstones pending once the leader has written to the snapshot after they were found. */
  function confirmFound(present: Tombstones, revision: number): void {
    if (present.foundAt === "reading") present.foundAt = revision;
    // Without a value, another tombstone was found while the revision was read.
    if (present.foundAt === undefined || revision <= present.foundAt) return;
    const dueMs = monotonicMs() + foundDelayMs;
    for (const id of present.found) present.pending.set(id, { dueMs, isRepeated: false });
    present.found.clear();
  }

  /** Postpones every removal until the leader has compared this database with the snapshot. */
  function countAsFound(): void {
    for (const id of tombstones.pending.keys()) addFound(tombstones, id);
  }

  function begin(): void {
    if (isStopping) return;
    working ??= removeDue()
      .catch((err: unknown) => {
        if (!isOutage(err)) throw err;
        countAsFound();
        logger.warn({ err, kind }, "rows of deleted places are not removed yet");
      })
      .finally(() => {
        working = undefined;
      });
  }

  return {
    apply(entry) {
      const id = deletedId(entry);
      if (id === undefined) return;
      tombstones.found.delete(id);
      tombstones.pending.set(id, { dueMs: monotonicMs(), isRepeated: false });
      begin();
    },
    resume(entry) {
      const id = deletedId(entry);
      if (id !== undefined) addFound(tombstones, id);
    },
    beginReplacing() {
      const next = noTombstones();
      return {
        take(entry) {
          const id = deletedId(entry);
          if (id !== undefined) addFound(next, id);
        },
        finish() {
          tombstones = next;
        },
      };
    },
    async stop() {
      isStopping = true;
      clearInterval(timer);
      await working;
    },
  };
}

function noTombstones(): Tombstones {
  return { pending: new Map(), found: new Set(), foundAt: undefined };
}

function addFound(to: Tombstones, id: string): void {
  to.pending.delete(id);
  to.found.add(id);
  to.foundAt = undefined;
}

function placeId(address: EntryAddress, kind: PlaceKind): string | undefined {
  if (address.kind !== kind) return undefined;
  if (address.kind === "project") return address.projectId;
  if (address.kind === "environment") return address.environmentId;
  return address.organizationId;
}
