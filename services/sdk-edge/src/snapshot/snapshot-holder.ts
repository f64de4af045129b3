import type { SnapshotEntry, SnapshotRevision } from "@halyard/contracts";
import { longestGapMs } from "@halyard/jetstream";
import type { Pace } from "./pace.ts";
import { type Changed, changedBetween, isNothing, reduce, type TakenEntry } from "./reduce.ts";
import { beginFullRead } from "./replace.ts";
import type { Snapshot } from "./snapshot.ts";

/**
 * The one place where the present snapshot changes. It is fed by `followNats`, or once from the cache on disk, and
 * passes every change to the edge's `applyChange`.
 *
 * Entries that arrive in one turn of the event loop are taken together at its end, and where taking them
 * is much work, those of the rest after that too (`Pace`). A burst of changes to one environment therefore costs few
 * new bodies and events. Between two turns the snapshot stands still: what one reader saw, the next one sees, or
 * something newer.
 */
export const snapshotSources = ["none", "cache", "nats"] as const;
export type SnapshotSource = (typeof snapshotSources)[number];

export type SnapshotChange = {
  snapshot: Snapshot;
  changed: Changed;
  /** True when everything was taken anew, false when the entries in `taken` changed it. */
  whole: boolean;
  /** Empty after a full read, whose entries may be of changes long past. */
  taken: readonly TakenEntry[];
};

export type SnapshotHolder = {
  readonly snapshot: Snapshot | undefined;
  readonly source: SnapshotSource;
  /** How long ago the snapshot was last known to be current; undefined without a snapshot. */
  staleMs(): number | undefined;
  /** The revision of the bucket that the snapshot contains; undefined before the first full read. */
  readonly applied: SnapshotRevision | undefined;
  /** Sets the only listener of changes. */
  onChange(listener: (change: SnapshotChange) => void): void;
  /** The listener is called after the listener of changes has processed all changes up to `applied`. */
  onApplied(listener: () => void): void;
  /** Takes what the cache held, unless NATS came first. `currentAtMs`: when it was last current. */
  restore(cached: { snapshot: Snapshot; currentAtMs: number }): void;
  /** Says that all that NATS has was handed over up to this moment. */
  confirmCurrent(): void;
  /** Begins a full read. The snapshot stays as it is until the read is finished. */
  beginRead(): HeldRead;
  /** A full read at once. */
  replace(epoch: string, entries: Iterable<SnapshotEntry>): void;
  apply(entry: SnapshotEntry): void;
  /** Every entry up to this revision was passed to `replace` or `apply`. */
  reached(revision: SnapshotRevision): void;
};

/** A full read that is under way. It may be abandoned. */
export type HeldRead = {
  take(entry: SnapshotEntry): void;
  /** The entries that were taken are all that exist. */
  finish(epoch: string): void;
};

/** Less than a timer can measure. */
const shortestRestMs = 1;

export function createSnapshotHolder(options: {
  now: () => number;
  pace: Pick<Pace, "restMs">;
}): SnapshotHolder {
  const { now, pace } = options;
  let snapshot: Snapshot | undefined;
  let source: SnapshotSource = "none";
  let currentAtMs = 0;
  let waiting: SnapshotEntry[] = [];
  let received: SnapshotRevision | undefined;
  let applied: SnapshotRevision | undefined;
  let onChange: (change: SnapshotChange) => void = () => {};
  let onApplied = () => {};

  function takeWaiting(): void {
    const entries = waiting;
    waiting = [];
    if (snapshot === undefined || entries.length === 0) return;
    const { changed, taken } = reduce(snapshot, entries);
    if (!isNothing(changed)) onChange({ snapshot, changed, taken, whole: false });
    markApplied();
  }

  function markApplied(): void {
    applied = received;
    onApplied();
  }

  function beginRead(): HeldRead {
    const read = beginFullRead(snapshot);
    return {
      take: read.take,
      finish(epoch) {
        takeWaiting();
        // After a longer gap, a deletion may have come and gone unseen: only the read counts.
        const followedUntilNow = source === "nats" && now() - currentAtMs < longestGapMs;
        const replaced = read.finish(snapshot, { epoch, followedUntilNow });
        snapshot = replaced.snapshot;
        source = "nats";
        currentAtMs = now();
        onChange({ ...replaced, whole: true, taken: [] });
      },
    };
  }

  return {
    get snapshot() {
      return snapshot;
    },
    get source() {
      return source;
    },
    get applied() {
      return applied;
    },
    onChange: (listener) => {
      onChange = listener;
    },
    onApplied: (listener) => {
      onApplied = listener;
    },
    staleMs: () => (snapshot === undefined ? undefined : Math.max(0, now() - currentAtMs)),
    restore(cached) {
      if (snapshot !== undefined) return;
      source = "cache";
      currentAtMs = cached.currentAtMs;
      snapshot = cached.snapshot;
      const changed = changedBetween(undefined, snapshot);
      onChange({ snapshot, changed, whole: true, taken: [] });
    },
    confirmCurrent: () => {
      currentAtMs = now();
    },
    beginRead,
    replace(epoch, entries) {
      const read = beginRead();
      for (const entry of entries) read.take(entry);
      read.finish(epoch);
    },
    apply(entry) {
      // The first asks for the end of the turn, or of the rest; those that follow come along.
      if (waiting.length === 0) {
        const restMs = pace.restMs();
        if (restMs < shortestRestMs) setImmediate(takeWaiting);
        else setTimeout(takeWaiting, restMs);
      }
      waiting.push(entry);
    },
    reached(revision) {
      received = revision;
      if (waiting.length === 0) markApplied();
    },
  };
}
