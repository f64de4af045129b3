import type { EntryAddress } from "@halyard/contracts";
import type { Logger } from "pino";
import type { SnapshotEntry } from "./follow-snapshot.ts";

/**
 * Removes the rows that a service stores about deleted projects, environments or organizations. It learns of deletions
 * from the tombstones in the snapshot, which outlive the removal of management's own rows, so a crash or an outage
 * delays the removal and does not prevent it.
 *
 * A tombstone that arrives while following counts immediately. One that was found by a read counts later: after a
 * restore of the database, the snapshot has tombstones of what exists again, until management has rebuilt it.
 */
export type DeletedPlaces = {
  /** Takes an entry that arrived while following. */
  apply(entry: SnapshotEntry): void;
  /** Takes an entry that the state lacked after an interruption. */
  resume(entry: SnapshotEntry): void;
  /** Begins a replacement by a whole snapshot's tombstones. */
  beginReplacing(): { take(entry: SnapshotEntry): void; finish(): void };
  stop(): Promise<void>;
};

type PlaceKind = "organization" | "project" | "environment";

/** Management rebuilds a snapshot within seconds. */
const foundDelayMs = 30_000;
const lookEveryMs = 1_000;

/**
 * A request that was authenticated before the deletion may write after the first removal. This is longer than any
 * request takes.
 */
const repeatAfterMs = 60_000;

type Pending = { dueMs: number; isRepeated: boolean };

export function removeOfDeletedPlaces(options: {
  kind: PlaceKind;
  /** Returns whether the follower is current and the snapshot is not being rebuilt. */
  isSettled: () => Promise<boolean>;
  /** Removes rows in batches. It can be called again for a place whose rows are gone. */
  remove: (ids: readonly string[], mayGoOn: () => boolean) => Promise<void>;
  isOutage: (error: unknown) => boolean;
  monotonicMs: () => number;
  logger: Logger;
}): DeletedPlaces {
  const { kind, isSettled, remove, isOutage, monotonicMs, logger } = options;
  let pending = new Map<string, Pending>();
  let isStopping = false;
  let working: Promise<void> | undefined;
  const timer = setInterval(begin, lookEveryMs).unref();

  const add = (to: Map<string, Pending>, entry: SnapshotEntry, delayMs: number) => {
    const id = "deleted" in entry.value ? placeId(entry.address, kind) : undefined;
    if (id !== undefined) to.set(id, { dueMs: monotonicMs() + delayMs, isRepeated: false });
    return id !== undefined;
  };

  async function removeDue(): Promise<void> {
    const present = pending;
    const due = [...present].filter(([, { dueMs }]) => dueMs <= monotonicMs());
    if (due.length === 0 || !(await isSettled())) return;
    await remove(
      due.map(([id]) => id),
      () => !isStopping,
    );
    for (const [id, removed] of due) {
      // A whole read or another tombstone has replaced it meanwhile.
      if (present.get(id) !== removed) continue;
      if (removed.isRepeated) present.delete(id);
      else present.set(id, { dueMs: monotonicMs() + repeatAfterMs, isRepeated: true });
    }
  }

  function begin(): void {
    if (isStopping) return;
    working ??= removeDue()
      .catch((err: unknown) => {
        if (!isOutage(err)) throw err;
        logger.warn({ err, kind }, "rows of deleted places are not removed yet");
      })
      .finally(() => {
        working = undefined;
      });
  }

  return {
    apply(entry) {
      if (add(pending, entry, 0)) begin();
    },
    resume: (entry) => void add(pending, entry, foundDelayMs),
    beginReplacing() {
      const next = new Map<string, Pending>();
      return {
        take: (entry) => void add(next, entry, foundDelayMs),
        finish() {
          pending = next;
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

function placeId(address: EntryAddress, kind: PlaceKind): string | undefined {
  if (address.kind !== kind) return undefined;
  if (address.kind === "project") return address.projectId;
  if (address.kind === "environment") return address.environmentId;
  return address.organizationId;
}
