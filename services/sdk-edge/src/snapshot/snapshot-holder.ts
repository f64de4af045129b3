import type { SnapshotEntry, SnapshotRevision } from "@halyard/contracts";
import { maxGapMs, type SnapshotRead } from "@halyard/jetstream";
import type { Pace } from "./pace.ts";
import { beginFullRead } from "./replace.ts";
import type { Snapshot } from "./snapshot.ts";
import {
  type ChangedIds,
  changedBetween,
  isNothing,
  type TakenEntry,
  takeEntries,
} from "./take-entries.ts";

export const snapshotSources = ["none", "cache", "nats"] as const;
export type SnapshotSource = (typeof snapshotSources)[number];

export type SnapshotUpdate = {
  snapshot: Snapshot;
  changed: ChangedIds;
  /** True when everything was taken anew, false when the entries in `taken` changed it. */
  isReplacement: boolean;
  /** Empty after a full read, whose entries may be of changes long past. */
  taken: readonly TakenEntry[];
};

/**
 * The one place where the present snapshot changes. It is fed by `followNats`, or once from the cache on disk, and
 * passes every change to the edge's `applyChange`.
 *
 * Entries that arrive in one turn of the event loop are taken together at its end, and where taking them
 * is much work, those of the rest after that too (`Pace`). A burst of changes to one environment therefore costs few
 * new bodies and events. Between two turns the snapshot stands still: what one reader saw, the next one sees, or
 * something newer.
 */
export type SnapshotHolder = {
  readonly snapshot: Snapshot | undefined;
  readonly source: SnapshotSource;
  /** How long ago the snapshot was last known to be current; undefined without a snapshot. */
  staleMs(): number | undefined;
  /** The revision of the bucket that the snapshot contains; undefined before the first full read. */
  readonly applied: SnapshotRevision | undefined;
  /** Sets the only listener of changes. */
  onChange(listener: (change: SnapshotUpdate) => void): void;
  /** The listener is called after the listener of changes has processed all changes up to `applied`. */
  onApplied(listener: () => void): void;
  /** Takes what the cache held, unless NATS came first. `currentAtMs`: when it was last current. */
  restore(cached: { snapshot: Snapshot; currentAtMs: number }): void;
  /** Says that all that NATS has was handed over up to this moment. */
  confirmCurrent(): void;
  /** Begins a full read. The snapshot stays as it is until the read is finished. */
  beginRead(): SnapshotRead;
  /** A full read at once. */
  replace(epoch: string, entries: Iterable<SnapshotEntry>): void;
  apply(entry: SnapshotEntry): void;
  /** Every entry up to this revision was passed to `replace` or `apply`. */
  reached(revision: SnapshotRevision): void;
};

/** Less than a timer can measure. */
const minPauseMs = 1;

type HolderOptions = { now: () => number; pace: Pick<Pace, "pauseMs"> };

/** The present snapshot and its origin. */
type Held = {
  snapshot: Snapshot | undefined;
  source: SnapshotSource;
  /** When the snapshot was last known to be current. */
  currentAtMs: number;
};

export function createSnapshotHolder({ now, pace }: HolderOptions): SnapshotHolder {
  const held: Held = { snapshot: undefined, source: "none", currentAtMs: 0 };
  const waiting = createWaitingEntries({ pace, take: takeWaiting });
  let received: SnapshotRevision | undefined;
  let applied: SnapshotRevision | undefined;
  let onChange: (change: SnapshotUpdate) => void = () => {};
  let onApplied = () => {};

  function takeWaiting(entries: readonly SnapshotEntry[]): void {
    const { snapshot } = held;
    if (snapshot === undefined) return;
    const { changed, taken } = takeEntries(snapshot, entries);
    if (!isNothing(changed)) onChange({ snapshot, changed, taken, isReplacement: false });
    markApplied();
  }

  function markApplied(): void {
    applied = received;
    onApplied();
  }

  function beginRead(): SnapshotRead {
    const onReplaced = (change: SnapshotUpdate) => onChange(change);
    return beginHeldRead(held, { now, flush: waiting.flush, onReplaced });
  }

  return {
    get snapshot() {
      return held.snapshot;
    },
    get source() {
      return held.source;
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
    staleMs: () =>
      held.snapshot === undefined ? undefined : Math.max(0, now() - held.currentAtMs),
    restore({ snapshot, currentAtMs }) {
      if (held.snapshot !== undefined) return;
      Object.assign(held, { snapshot, source: "cache", currentAtMs } satisfies Held);
      const changed = changedBetween(undefined, snapshot);
      onChange({ snapshot, changed, isReplacement: true, taken: [] });
    },
    confirmCurrent: () => {
      held.currentAtMs = now();
    },
    beginRead,
    replace(epoch, entries) {
      const read = beginRead();
      for (const entry of entries) read.take(entry);
      read.finish(epoch);
    },
    apply: waiting.add,
    reached(revision) {
      received = revision;
      if (waiting.isEmpty()) markApplied();
    },
  };
}

/** Begins a full read, which replaces what is held when it is finished. Entries that wait are taken before that. */
function beginHeldRead(
  held: Held,
  {
    now,
    flush,
    onReplaced,
  }: { now: () => number; flush: () => void; onReplaced: (change: SnapshotUpdate) => void },
): SnapshotRead {
  const read = beginFullRead(held.snapshot);
  return {
    take: read.take,
    finish(epoch) {
      flush();
      // After a longer gap, a deletion may have come and gone unseen: only the read counts.
      const followedUntilNow = held.source === "nats" && now() - held.currentAtMs < maxGapMs;
      const replaced = read.finish(held.snapshot, { epoch, followedUntilNow });
      const { snapshot } = replaced;
      Object.assign(held, { snapshot, source: "nats", currentAtMs: now() } satisfies Held);
      onReplaced({ ...replaced, isReplacement: true, taken: [] });
    },
  };
}

/** Collects entries until the end of the turn or of the rest, and passes them on together. */
function createWaitingEntries({
  pace,
  take,
}: {
  pace: Pick<Pace, "pauseMs">;
  take: (entries: readonly SnapshotEntry[]) => void;
}) {
  let waiting: SnapshotEntry[] = [];

  function flush(): void {
    const entries = waiting;
    waiting = [];
    if (entries.length > 0) take(entries);
  }

  return {
    flush,
    isEmpty: () => waiting.length === 0,
    add(entry: SnapshotEntry): void {
      // The first one plans the flush; those that follow come along.
      if (waiting.length === 0) {
        const pauseMs = pace.pauseMs();
        if (pauseMs < minPauseMs) setImmediate(flush);
        else setTimeout(flush, pauseMs);
      }
      waiting.push(entry);
    },
  };
}
