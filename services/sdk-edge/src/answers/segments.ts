import type { FlagEntry, Tombstone } from "@halyard/contracts";
import {
  type CompiledFlag,
  codeOfOutcome,
  compile,
  compileAll,
  type EvaluateAll,
  emptyContext,
  hasPattern,
} from "@halyard/evaluation";
import { existingFlag, isDeleted, type TakenEntry } from "../snapshot/snapshot.ts";
import { SegmentKeys } from "./flag-keys.ts";

/**
 * The flags of an environment in the order of their keys, in segments of bounded length. A change of one flag therefore
 * costs about the same with a thousand flags and with a hundred thousand. There is always at least one segment. A
 * segment is empty only if the environment has no flags.
 */
export type Segments = readonly Segment[];

/**
 * Maximum number of flags in a segment. The flags of a segment share the evaluation of equal conditions, so a small
 * environment is one segment. A change copies the lists of one segment, which takes a few microseconds at this length.
 */
export const maxSegmentSize = 1_024;

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
  #evaluateAll: EvaluateAll | undefined;
  #outcomesWithoutContext: Uint8Array | undefined;

  /** Derives the parts that are not in `known`. */
  constructor(
    withReplaced: readonly PreparedFlag[],
    known?: Pick<Segment, "flags" | "keys" | "weight">,
  ) {
    this.withReplaced = withReplaced;
    this.flags = known?.flags ?? newestOfEachKey(withReplaced);
    this.keys = known?.keys ?? new SegmentKeys(this.flags.map(({ entry }) => entry.key));
    this.weight = known?.weight ?? this.flags.reduce((sum, { weight }) => sum + weight, 0);
  }

  get evaluateAll(): EvaluateAll {
    this.#evaluateAll ??= compileAll(this.flags.map(({ compiled }) => compiled));
    return this.#evaluateAll;
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
  /**
   * True while the keys are those of the previous segment. Otherwise the new segment derives everything from its flags.
   */
  #hasSameKeys: boolean;

  constructor(previous: Segment) {
    this.withReplaced = [...previous.withReplaced];
    this.#previous = previous;
    this.#weight = previous.weight;
    this.#hasSameKeys = previous.withReplaced.length === previous.flags.length;
  }

  remove(entry: FlagEntry): void {
    const position = this.#positionOf(entry);
    if (!this.#isAt(position, entry)) return;
    this.withReplaced.splice(position, 1);
    this.#hasSameKeys = false;
  }

  /** Adds a flag, or replaces the flag with the same key and id. */
  put(entry: FlagEntry): void {
    const position = this.#positionOf(entry);
    const flag = prepareFlag(entry);
    if (this.#isAt(position, entry)) {
      this.#weight += flag.weight - (this.withReplaced[position]?.weight ?? 0);
      this.withReplaced[position] = flag;
    } else {
      this.withReplaced.splice(position, 0, flag);
      this.#hasSameKeys = false;
    }
  }

  finish(): Segment {
    if (!this.#hasSameKeys) return new Segment(this.withReplaced);
    const { keys } = this.#previous;
    return new Segment(this.withReplaced, { flags: this.withReplaced, keys, weight: this.#weight });
  }

  #isAt(position: number, entry: FlagEntry): boolean {
    const found = this.withReplaced[position]?.entry;
    return found !== undefined && compareEntries(found, entry) === 0;
  }

  /** Returns the index of an entry, or the index at which it belongs. */
  #positionOf(entry: FlagEntry): number {
    return firstIndex(this.withReplaced, (flag) => compareEntries(flag.entry, entry) >= 0);
  }
}

/** Prepares all flags that exist. Those that `previous` contains are reused. */
export function orderFlags(
  entries: Iterable<FlagEntry | Tombstone>,
  previous: Segments = [],
): Segments {
  const known = new Map<FlagEntry, PreparedFlag>();
  for (const { withReplaced } of previous)
    for (const one of withReplaced) known.set(one.entry, one);
  const flags: PreparedFlag[] = [];
  for (const entry of entries)
    if (!isDeleted(entry)) flags.push(known.get(entry) ?? prepareFlag(entry));
  return segmentsOf(flags.sort((one, other) => compareEntries(one.entry, other.entry)));
}

/** Applies entries of flags in their order. Segments without a change are the same objects as before. */
export function changeFlags(segments: Segments, taken: Iterable<TakenEntry>): Segments {
  const drafts = new Map<number, SegmentDraft>();
  function draftFor({ key }: FlagEntry): SegmentDraft {
    const index = segmentIndexOf(segments, key);
    let draft = drafts.get(index);
    if (draft === undefined) {
      draft = new SegmentDraft(segments[index] as Segment);
      drafts.set(index, draft);
    }
    return draft;
  }

  for (const entry of taken) {
    const before = existingFlag(entry.before);
    const after = existingFlag(entry.value);
    if (before !== undefined && before.key !== after?.key) draftFor(before).remove(before);
    if (after !== undefined) draftFor(after).put(after);
  }
  const changed: Segment[] = [];
  segments.forEach((segment, index) => {
    const draft = drafts.get(index);
    if (draft === undefined) changed.push(segment);
    else append(changed, draft);
  });
  return changed.length === 0 ? segmentsOf([]) : changed;
}

/** Returns the flag with a key. */
export function findFlag(segments: Segments, key: string): PreparedFlag | undefined {
  const candidates = segments[segmentIndexOf(segments, key)]?.flags ?? [];
  const found = candidates[firstIndex(candidates, ({ entry }) => entry.key >= key)];
  return found?.entry.key === key ? found : undefined;
}

function append(segments: Segment[], draft: SegmentDraft): void {
  const { length } = draft.withReplaced;
  if (length === 0) return;
  const last = segments.at(-1);
  if (
    last !== undefined &&
    length < minSegmentSize &&
    last.withReplaced.length + length <= maxSegmentSize
  )
    segments.splice(-1, 1, new Segment([...last.withReplaced, ...draft.withReplaced]));
  else if (length <= maxSegmentSize) segments.push(draft.finish());
  else segments.push(...segmentsOf(draft.withReplaced));
}

/** Cuts ordered flags into segments of about equal length. */
function segmentsOf(ordered: readonly PreparedFlag[]): Segment[] {
  const segments: Segment[] = [];
  const length = Math.ceil(ordered.length / Math.ceil(ordered.length / maxSegmentSize));
  for (let begin = 0; begin < ordered.length; ) {
    let end = begin + length;
    // Flags with the same key stay together.
    while (ordered[end] !== undefined && ordered[end]?.entry.key === ordered[end - 1]?.entry.key)
      end += 1;
    segments.push(new Segment(ordered.slice(begin, end)));
    begin = end;
  }
  return segments.length === 0 ? [new Segment([])] : segments;
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

/** A flag that is ready to be evaluated. It is prepared once for each version of its entry. */
export type PreparedFlag = {
  readonly entry: FlagEntry;
  readonly compiled: CompiledFlag;
  /** Cost of evaluating it, in conditions; 0 if its outcome is constant. */
  readonly weight: number;
  /** Number of its outcome for the empty context. */
  readonly outcomeWithoutContext: number;
};

/** Worst-case cost of a condition with a regular expression, in other conditions. */
const expressionWeight = 500;

function prepareFlag(entry: FlagEntry): PreparedFlag {
  const compiled = compile(entry);
  return {
    entry,
    compiled,
    weight: compiled.constant === undefined ? weightOf(entry) : 0,
    outcomeWithoutContext: codeOfOutcome(compiled.evaluate(emptyContext)),
  };
}

function weightOf({ targeting_rules }: FlagEntry): number {
  let weight = 0;
  for (const { conditions } of targeting_rules)
    for (const { operator } of conditions) weight += hasPattern(operator) ? expressionWeight : 1;
  return weight;
}
