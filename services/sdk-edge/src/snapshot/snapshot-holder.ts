import type { SnapshotEntry, SnapshotRevision } from "@halyard/contracts";
import { maxGapMs, type SnapshotRead } from "@halyard/snapshot";
import type { Span } from "@halyard/tracing";
import type { AudienceChunk } from "./audience-chunk.ts";
import { beginFullRead } from "./replace.ts";
import {
  type ChangedIds,
  changedBetween,
  isNothing,
  type Snapshot,
  type TakenEntry,
  takeEntries,
} from "./snapshot.ts";

export const snapshotSources = ["none", "cache", "nats"] as const;
type SnapshotSource = (typeof snapshotSources)[number];

export type SnapshotUpdate = {
  snapshot: Snapshot;
  changed: ChangedIds;
  /** True if the whole snapshot was replaced; false if it was changed by the entries in `taken`. */
  isReplacement: boolean;
  /** Empty after a full read, whose entries may be of old changes. */
  taken: readonly TakenEntry[];
  /** Chunks of lists that left the snapshot. Absent after a full read. */
  removedChunks?: readonly AudienceChunk[];
  /** The entries whose changes have traces. */
  traced?: readonly TracedEntry[];
};

/** An entry that waits to be applied, and its span, which ends when the update has been processed. */
export type TracedEntry = { entry: SnapshotEntry; span: Span };

/**
 * Holds the current snapshot and makes all its updates. `followNats` passes entries to it, and the cache on disk at
 * most once. It passes every update to `applyUpdates`.
 *
 * Entries that arrive in one turn of the event loop are applied together at its end. After a costly change, the entries
 * that arrive during a pause are also applied together (`Pace`). A burst of changes to one environment therefore costs
 * few new bodies and events. A reader sees one state throughout its turn, and a later reader sees the same state or a
 * newer one.
 */
export type SnapshotHolder = {
  readonly snapshot: Snapshot | undefined;
  readonly source: SnapshotSource;
  /** Returns the time since the snapshot was last known to be current; undefined without a snapshot. */
  staleMs(): number | undefined;
  /** The revision of the bucket that the snapshot contains; undefined before the first full read. */
  readonly applied: SnapshotRevision | undefined;
  /** Sets the only listener of updates. */
  onUpdate(listener: (update: SnapshotUpdate) => void): void;
  /** Sets the only listener that is called after the listener of updates has processed all updates up to `applied`. */
  onApplied(listener: () => void): void;
  /**
   * Takes the snapshot of the cache, unless a snapshot is already held. `currentAtMs` is the time at which it was last
   * current.
   */
  restore(cached: { snapshot: Snapshot; currentAtMs: number }): void;
  /** Records that every entry of NATS has been passed on up to now. */
  confirmCurrent(): void;
  /** Begins a full read. The snapshot does not change until the read finishes. */
  beginRead(): SnapshotRead;
  /** Performs a full read of the given entries. */
  replace(epoch: string, entries: Iterable<SnapshotEntry>): void;
  apply(entry: SnapshotEntry, span?: Span): void;
  /** Every entry up to this revision was passed to `replace` or `apply`. */
  reached(revision: SnapshotRevision): void;
};

/** A shorter pause is below the resolution of a timer. */
const minPauseMs = 1;

type HolderOptions = { now: () => number; pace: Pick<Pace, "pauseMs"> };

/** The current snapshot and its origin. */
type Held = {
  snapshot: Snapshot | undefined;
  source: SnapshotSource;
  /** Time at which the snapshot was last known to be current. */
  currentAtMs: number;
};

export function createSnapshotHolder({ now, pace }: HolderOptions): SnapshotHolder {
  const held: Held = { snapshot: undefined, source: "none", currentAtMs: 0 };
  const waiting = createWaitingEntries({ pace, take: takeWaiting });
  let received: SnapshotRevision | undefined;
  let applied: SnapshotRevision | undefined;
  let onUpdate: (update: SnapshotUpdate) => void = () => {};
  let onApplied = () => {};

  function takeWaiting(entries: readonly SnapshotEntry[], traced: readonly TracedEntry[]): void {
    const { snapshot } = held;
    if (snapshot === undefined) return;
    const { changed, ...rest } = takeEntries(snapshot, entries);
    if (!isNothing(changed)) onUpdate({ snapshot, changed, ...rest, traced, isReplacement: false });
    for (const { span } of traced) span.end();
    markApplied();
  }

  function markApplied(): void {
    applied = received;
    onApplied();
  }

  function beginRead(): SnapshotRead {
    const onReplaced = (update: SnapshotUpdate) => onUpdate(update);
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
    onUpdate: (listener) => {
      onUpdate = listener;
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
      onUpdate({ snapshot, changed, isReplacement: true, taken: [] });
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

/** Begins a full read, which replaces the held snapshot when it finishes. Waiting entries are applied before that. */
function beginHeldRead(
  held: Held,
  {
    now,
    flush,
    onReplaced,
  }: { now: () => number; flush: () => void; onReplaced: (update: SnapshotUpdate) => void },
): SnapshotRead {
  const read = beginFullRead(held.snapshot);
  return {
    take: read.take,
    finish(epoch) {
      flush();
      // After a longer gap, a deletion may have been written and removed unseen, so only the read counts.
      const followedUntilNow = held.source === "nats" && now() - held.currentAtMs < maxGapMs;
      const replaced = read.finish(held.snapshot, { epoch, followedUntilNow });
      const { snapshot } = replaced;
      Object.assign(held, { snapshot, source: "nats", currentAtMs: now() } satisfies Held);
      onReplaced({ ...replaced, isReplacement: true, taken: [] });
    },
  };
}

/** Collects entries until the end of the turn or of the pause, and passes them on together. */
function createWaitingEntries({
  pace,
  take,
}: {
  pace: Pick<Pace, "pauseMs">;
  take: (entries: readonly SnapshotEntry[], traced: readonly TracedEntry[]) => void;
}) {
  let waiting: SnapshotEntry[] = [];
  let traced: TracedEntry[] = [];

  function flush(): void {
    const entries = waiting;
    const spans = traced;
    waiting = [];
    traced = [];
    if (entries.length > 0) take(entries, spans);
  }

  return {
    flush,
    isEmpty: () => waiting.length === 0,
    add(entry: SnapshotEntry, span?: Span): void {
      // The first entry schedules the flush of all that follow.
      if (waiting.length === 0) {
        const pauseMs = pace.pauseMs();
        if (pauseMs < minPauseMs) setImmediate(flush);
        else setTimeout(flush, pauseMs);
      }
      waiting.push(entry);
      if (span !== undefined) traced.push({ entry, span });
    },
  };
}

/**
 * Delay between changes. With very many flags in an environment, each change costs milliseconds for the new view. A
 * burst of thousands of changes would use all of an edge's time. So after a change, the edge pauses for a multiple of
 * that time. It then applies all changes that arrived meanwhile together. A single change is not delayed.
 */
export type Pace = {
  /** Records the time that it took to update the views for a change. */
  addWork(ms: number): void;
  /** Returns the time that the next change has to wait. */
  pauseMs(): number;
};

/**
 * Length of a pause, as a multiple of the work before it. The updates take a quarter of the time at most, and the rest
 * serves requests.
 */
const pausePerWork = 3;

/**
 * Maximum pause. Every change must take effect within a second, including the end of a key. It waits for the work of the
 * previous change, the pause, and its own work. The quarter therefore holds for work of up to a sixth of a second;
 * longer work takes a larger share.
 */
const maxPauseMs = 500;

export function createPace(monotonicMs: () => number): Pace {
  let pausedUntilMs = 0;
  return {
    addWork(ms) {
      pausedUntilMs = monotonicMs() + Math.min(ms * pausePerWork, maxPauseMs);
    },
    pauseMs: () => Math.max(0, pausedUntilMs - monotonicMs()),
  };
}
