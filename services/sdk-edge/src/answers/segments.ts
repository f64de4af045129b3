import type { FlagEntry } from "@halyard/contracts";
import { compileAll, type EvaluateAll } from "@halyard/evaluation";
import { SegmentKeys } from "./flag-keys.ts";
import type { PreparedFlag } from "./prepared-flag.ts";

/**
 * The flags of an environment in the order of their keys, in segments of bounded length and size. A change of one flag
 * therefore costs about the same with a thousand flags and with a hundred thousand, and with few bytes of rules and with
 * many. There is always at least one segment. A segment is empty only if the environment has no flags.
 */
export type Segments = readonly Segment[];

/**
 * Maximum number of flags in a segment. The flags of a segment share the evaluation of equal conditions, so a small
 * environment is one segment. A change copies the lists of one segment, which takes a few microseconds at this length.
 */
export const maxSegmentSize = 1_024;

/**
 * Maximum size of the rules and variations in a segment of several flags. Flags with ordinary rules fill a segment by their number. Some
 * flags with the longest rules, of 480 KiB each, are serialized and compressed again after a change of one of them.
 */
export const maxSegmentBytes = 512 * 1024;

/**
 * Minimum length of a changed segment. A shorter one is merged into the segment before it, so that deletions do not
 * leave many tiny segments.
 */
const minSegmentSize = maxSegmentSize / 4;

/**
 * Consecutive flags of an environment in the order of their keys. A segment is immutable: a change of a flag creates
 * another segment, and the other segments are reused with everything that was prepared from them. Parts that not every
 * request needs are prepared at their first use.
 */
export class Segment {
  /**
   * All flags that exist, ordered by key and id. A key belongs to one flag at a time. But if a flag is deleted and
   * created again, the new flag may arrive before the deletion of the old one.
   */
  readonly withReplaced: readonly PreparedFlag[];
  /** The newest flag of each key. Ids increase with time, so that is the flag with the greatest id. */
  readonly flags: readonly PreparedFlag[];
  /** The keys of `flags`. */
  readonly keys: SegmentKeys;
  readonly weight: number;
  /** Size of the rules and variations of `withReplaced`. */
  readonly bytes: number;
  #evaluateAll: EvaluateAll | undefined;
  #outcomesWithoutContext: Uint8Array | undefined;
  #typedIndexes: readonly number[] | undefined;

  /** Derives the parts that are not in `known`. */
  constructor(
    withReplaced: readonly PreparedFlag[],
    known?: Pick<Segment, "flags" | "keys" | "weight" | "bytes">,
  ) {
    this.withReplaced = withReplaced;
    this.flags = known?.flags ?? newestOfEachKey(withReplaced);
    this.keys = known?.keys ?? new SegmentKeys(this.flags.map(({ entry }) => entry.key));
    this.weight = known?.weight ?? this.flags.reduce((sum, { weight }) => sum + weight, 0);
    this.bytes = known?.bytes ?? withReplaced.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  get evaluateAll(): EvaluateAll {
    this.#evaluateAll ??= compileAll(this.flags.map(({ compiled }) => compiled));
    return this.#evaluateAll;
  }

  /** The indexes of the typed flags in `flags`. */
  get typedIndexes(): readonly number[] {
    this.#typedIndexes ??= [...this.flags.keys()].filter((index) => this.flags[index]?.isTyped);
    return this.#typedIndexes;
  }

  /** The outcome code of each flag for the empty context. */
  get outcomesWithoutContext(): Uint8Array {
    if (this.#outcomesWithoutContext === undefined) {
      const outcomes = new Uint8Array(this.flags.length);
      this.flags.forEach(({ outcomeWithoutContext }, index) => {
        outcomes[index] = outcomeWithoutContext;
      });
      this.#outcomesWithoutContext = outcomes;
    }
    return this.#outcomesWithoutContext;
  }
}

/**
 * Applies changes to the flags of a segment, in order. Replacing a flag does not visit the other flags, because in a
 * large heap that takes far longer (bench `growth-edge-flags`).
 */
class SegmentDraft {
  readonly withReplaced: PreparedFlag[];
  readonly #previous: Segment;
  #weight: number;
  #bytes: number;
  /**
   * True while the keys are those of the previous segment. Otherwise the new segment derives everything from its flags.
   */
  #hasSameKeys: boolean;

  constructor(previous: Segment) {
    this.withReplaced = [...previous.withReplaced];
    this.#previous = previous;
    this.#weight = previous.weight;
    this.#bytes = previous.bytes;
    this.#hasSameKeys = previous.withReplaced.length === previous.flags.length;
  }

  remove(entry: FlagEntry): void {
    const position = this.#positionOf(entry);
    const removed = this.#flagAt(position, entry);
    if (removed === undefined) return;
    this.withReplaced.splice(position, 1);
    this.#bytes -= removed.bytes;
    this.#hasSameKeys = false;
  }

  /** Adds a flag, or replaces the flag with the same key and id. */
  put(flag: PreparedFlag): void {
    const { entry } = flag;
    const position = this.#positionOf(entry);
    const replaced = this.#flagAt(position, entry);
    this.#bytes += flag.bytes - (replaced?.bytes ?? 0);
    if (replaced !== undefined) {
      this.#weight += flag.weight - replaced.weight;
      this.withReplaced[position] = flag;
    } else {
      this.withReplaced.splice(position, 0, flag);
      this.#hasSameKeys = false;
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  finish(): Segment {
    if (!this.#hasSameKeys) return new Segment(this.withReplaced);
    const { keys } = this.#previous;
    return new Segment(this.withReplaced, {
      ...{ flags: this.withReplaced, keys },
      ...{ weight: this.#weight, bytes: this.#bytes },
    });
  }

  /** Returns the flag at an index if it has the key and the id of the entry. */
  #flagAt(position: number, entry: FlagEntry): PreparedFlag | undefined {
    const found = this.withReplaced[position];
    return found !== undefined && compareEntries(found.entry, entry) === 0 ? found : undefined;
  }

  /** Returns the index of an entry, or the index at which it belongs. */
  #positionOf(entry: FlagEntry): number {
    return firstIndex(this.withReplaced, (flag) => compareEntries(flag.entry, entry) >= 0);
  }
}

/** The flags of an environment while a change is applied. */
export type FlagsDraft = {
  /** Returns the newest flag with a key. */
  find(key: string): PreparedFlag | undefined;
  /** Returns the flag with the key and the id of an entry. */
  get(entry: FlagEntry): PreparedFlag | undefined;
  /** Adds a flag, or replaces the one with the same key and id. */
  put(flag: PreparedFlag): void;
  /** Removes the flag with the key and the id of an entry. */
  remove(entry: FlagEntry): void;
  finish(): Segments;
};

/** Begins a change of some flags. Segments without a change stay the same objects. */
export function draftOf(segments: Segments): FlagsDraft {
  const drafts = new Map<number, SegmentDraft>();
  const draftedOrHeld = (index: number) => drafts.get(index) ?? segments[index];

  function draftFor({ key }: FlagEntry): SegmentDraft {
    const index = segmentIndexOf(segments, key);
    let draft = drafts.get(index);
    if (draft === undefined) {
      draft = new SegmentDraft(segments[index] as Segment);
      drafts.set(index, draft);
    }
    return draft;
  }

  return {
    find: (key) =>
      newestWith(draftedOrHeld(segmentIndexOf(segments, key))?.withReplaced ?? [], key),
    get(entry) {
      const flags = draftedOrHeld(segmentIndexOf(segments, entry.key))?.withReplaced ?? [];
      return flagWith(flags, entry);
    },
    put: (flag) => draftFor(flag.entry).put(flag),
    remove(entry) {
      if (this.get(entry) !== undefined) draftFor(entry).remove(entry);
    },
    finish() {
      if (drafts.size === 0) return segments;
      const changed: Segment[] = [];
      segments.forEach((segment, index) => {
        const draft = drafts.get(index);
        if (draft === undefined) changed.push(segment);
        else append(changed, draft);
      });
      return changed.length === 0 ? segmentsOf([]) : changed;
    },
  };
}

/** Begins a draft of all flags, in any order. It creates all segments. */
export function draftOfAll(flags: readonly PreparedFlag[]): FlagsDraft {
  const byKey = new Map<string, PreparedFlag[]>();
  const put = (flag: PreparedFlag) => {
    const { entry } = flag;
    const others = (byKey.get(entry.key) ?? []).filter(
      (other) => other.entry.flag_id !== entry.flag_id,
    );
    byKey.set(entry.key, [...others, flag].sort(inOrder));
  };
  flags.forEach(put);
  return {
    find: (key) => byKey.get(key)?.at(-1),
    get: (entry) => byKey.get(entry.key)?.find((flag) => compareEntries(flag.entry, entry) === 0),
    put,
    remove({ key, flag_id }) {
      const left = (byKey.get(key) ?? []).filter(({ entry }) => entry.flag_id !== flag_id);
      byKey.set(key, left);
    },
    finish: () => orderFlags([...byKey.values()].flat()),
  };
}

/** Creates the segments of flags in any order. */
export function orderFlags(flags: PreparedFlag[]): Segments {
  return segmentsOf(flags.sort(inOrder));
}

const inOrder = (one: PreparedFlag, other: PreparedFlag) => compareEntries(one.entry, other.entry);

/** Returns the flag with a key. */
export function findFlag(segments: Segments, key: string): PreparedFlag | undefined {
  const candidates = segments[segmentIndexOf(segments, key)]?.flags ?? [];
  const found = candidates[firstIndex(candidates, ({ entry }) => entry.key >= key)];
  return found?.entry.key === key ? found : undefined;
}

/** Returns the last flag with a key in ordered flags. */
function newestWith(flags: readonly PreparedFlag[], key: string): PreparedFlag | undefined {
  const last = flags[firstIndex(flags, ({ entry }) => entry.key > key) - 1];
  return last?.entry.key === key ? last : undefined;
}

/** Returns the flag with the key and the id of an entry in ordered flags. */
function flagWith(flags: readonly PreparedFlag[], entry: FlagEntry): PreparedFlag | undefined {
  const found = flags[firstIndex(flags, (flag) => compareEntries(flag.entry, entry) >= 0)];
  return found !== undefined && compareEntries(found.entry, entry) === 0 ? found : undefined;
}

function append(segments: Segment[], draft: SegmentDraft): void {
  const { length } = draft.withReplaced;
  if (length === 0) return;
  const last = segments.at(-1);
  if (last !== undefined && length < minSegmentSize && fitInOne(last, draft))
    segments.splice(-1, 1, new Segment([...last.withReplaced, ...draft.withReplaced]));
  else if (length === 1 || fitInOne(draft)) segments.push(draft.finish());
  else segments.push(...segmentsOf(draft.withReplaced));
}

/** Returns whether the flags of these parts are one segment at most. */
function fitInOne(...parts: Pick<Segment, "withReplaced" | "bytes">[]): boolean {
  const length = parts.reduce((sum, { withReplaced }) => sum + withReplaced.length, 0);
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  return length <= maxSegmentSize && bytes <= maxSegmentBytes;
}

/** Cuts ordered flags into segments, which have about equal lengths unless their rules are large. */
function segmentsOf(ordered: readonly PreparedFlag[]): Segment[] {
  const segments: Segment[] = [];
  const length = Math.ceil(ordered.length / Math.ceil(ordered.length / maxSegmentSize));
  let begin = 0;
  let bytes = 0;
  ordered.forEach((flag, end) => {
    const isFull = end - begin >= length || bytes + flag.bytes > maxSegmentBytes;
    // Flags with the same key stay together.
    if (end > begin && isFull && flag.entry.key !== ordered[end - 1]?.entry.key) {
      segments.push(new Segment(ordered.slice(begin, end)));
      begin = end;
      bytes = 0;
    }
    bytes += flag.bytes;
  });
  return [...segments, new Segment(ordered.slice(begin))];
}

/** Returns the index of the segment that contains a key, or would contain it. */
function segmentIndexOf(segments: Segments, key: string): number {
  const next = firstIndex(
    segments,
    ({ withReplaced }) => (withReplaced[0]?.entry.key ?? key) > key,
  );
  return Math.max(0, next - 1);
}

/** Returns the first index at which a condition holds, by binary search; the length if there is none. */
function firstIndex<T>(list: readonly T[], holds: (one: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(list[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Compares flags in the order of segments: by key, then by id. */
function compareEntries(one: FlagEntry, other: FlagEntry): number {
  if (one.key !== other.key) return one.key < other.key ? -1 : 1;
  if (one.flag_id === other.flag_id) return 0;
  return one.flag_id < other.flag_id ? -1 : 1;
}

function newestOfEachKey(flags: readonly PreparedFlag[]): readonly PreparedFlag[] {
  return flags.filter(({ entry }, index) => flags[index + 1]?.entry.key !== entry.key);
}
