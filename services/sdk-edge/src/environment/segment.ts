import type { FlagEntry } from "@halyard/contracts";
import { compileAll, type EvaluateAll } from "@halyard/evaluation";
import { SegmentKeys } from "./flag-keys.ts";
import { type PreparedFlag, prepareFlag } from "./prepared-flag.ts";

/**
 * A run of an environment's flags in the order of their keys. It never changes: a change of a flag makes
 * another segment, and the environment's others are used again with all that was prepared from them. What
 * not every request needs is prepared at its first use.
 */
export class Segment {
  /**
   * All flags that exist, ordered by key and id. A key belongs to one flag at a time, but when one was
   * deleted and created again, the new flag may arrive before the deletion of the old one.
   */
  readonly all: readonly PreparedFlag[];
  /** One flag for each key: the newest. Ids grow with time, so that is the one with the greatest id. */
  readonly flags: readonly PreparedFlag[];
  /** The keys of `flags`. */
  readonly keys: SegmentKeys;
  readonly weight: number;
  #evaluateAll: EvaluateAll | undefined;
  #outcomesForNobody: Uint8Array | undefined;

  /** Derives from all flags everything that is not given. */
  constructor(all: readonly PreparedFlag[], known?: Pick<Segment, "flags" | "keys" | "weight">) {
    this.all = all;
    this.flags = known?.flags ?? newestOfEachKey(all);
    this.keys = known?.keys ?? new SegmentKeys(this.flags.map(({ entry }) => entry.key));
    this.weight = known?.weight ?? this.flags.reduce((sum, { weight }) => sum + weight, 0);
  }

  get evaluateAll(): EvaluateAll {
    this.#evaluateAll ??= compileAll(this.flags.map(({ flag }) => flag));
    return this.#evaluateAll;
  }

  /** The number of each flag's outcome for the empty context. */
  get outcomesForNobody(): Uint8Array {
    if (this.#outcomesForNobody === undefined) {
      const outcomes = new Uint8Array(this.flags.length);
      this.flags.forEach(({ outcomeForNobody }, index) => {
        outcomes[index] = outcomeForNobody;
      });
      this.#outcomesForNobody = outcomes;
    }
    return this.#outcomesForNobody;
  }
}

/** A change of one flag; undefined where it does not exist. */
export type FlagDifference = { before: FlagEntry | undefined; after: FlagEntry | undefined };

/**
 * Applies changes to the flags of a segment, in their order. A flag that is replaced costs the same whatever the
 * others are, because looking at every flag of a segment in a large heap costs far more (bench `growth-edge-flags`).
 */
export class SegmentDraft {
  readonly all: PreparedFlag[];
  readonly #previous: Segment;
  #weight: number;
  /** False: the segment derives everything from its flags. */
  #hasSameKeys: boolean;

  constructor(previous: Segment) {
    this.all = [...previous.all];
    this.#previous = previous;
    this.#weight = previous.weight;
    this.#hasSameKeys = previous.all.length === previous.flags.length;
  }

  remove(entry: FlagEntry): void {
    const place = this.#placeOf(entry);
    if (!this.#isAt(place, entry)) return;
    this.all.splice(place, 1);
    this.#hasSameKeys = false;
  }

  /** Adds a flag, or replaces the flag with the same key and id. */
  put(entry: FlagEntry): void {
    const place = this.#placeOf(entry);
    const flag = prepareFlag(entry);
    if (this.#isAt(place, entry)) {
      this.#weight += flag.weight - (this.all[place]?.weight ?? 0);
      this.all[place] = flag;
    } else {
      this.all.splice(place, 0, flag);
      this.#hasSameKeys = false;
    }
  }

  finish(): Segment {
    if (!this.#hasSameKeys) return new Segment(this.all);
    const { keys } = this.#previous;
    return new Segment(this.all, { flags: this.all, keys, weight: this.#weight });
  }

  #isAt(place: number, entry: FlagEntry): boolean {
    const found = this.all[place]?.entry;
    return found !== undefined && compareEntries(found, entry) === 0;
  }

  /** The index of an entry, or where it would be. */
  #placeOf(entry: FlagEntry): number {
    return firstIndex(this.all, (flag) => compareEntries(flag.entry, entry) >= 0);
  }
}

/** Returns the first index at which a condition holds, by binary search; the length if there is none. */
export function firstIndex<T>(list: readonly T[], holds: (one: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(list[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The order of flags in segments. */
export function compareEntries(one: FlagEntry, other: FlagEntry): number {
  if (one.key !== other.key) return one.key < other.key ? -1 : 1;
  if (one.flag_id === other.flag_id) return 0;
  return one.flag_id < other.flag_id ? -1 : 1;
}

function newestOfEachKey(all: readonly PreparedFlag[]): readonly PreparedFlag[] {
  return all.filter(({ entry }, index) => all[index + 1]?.entry.key !== entry.key);
}
