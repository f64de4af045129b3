import type { FlagEntry } from "@halyard/contracts";
import { firstIndex } from "./first-index.ts";
import { type PreparedFlag, prepareFlag } from "./prepared-flag.ts";
import { compareEntries, Segment } from "./segment.ts";

/** A change of one flag; undefined where it does not exist. */
export type FlagDifference = { before: FlagEntry | undefined; after: FlagEntry | undefined };

/**
 * The flags of a segment while some of them change. A change touches only its own flag and the lists: to
 * look at every flag of a segment in a large heap costs far more than the change.
 */
export class SegmentDraft {
  readonly all: PreparedFlag[];
  readonly #previous: Segment;
  /** The keys of all flags; undefined while they are those of the previous segment. */
  #keys: { list: string[]; added: string[]; removed: string[] } | undefined;
  #weight: number;
  /** True if two flags may claim the same key; the segment then derives everything from its flags. */
  #hasRivals: boolean;

  constructor(previous: Segment) {
    this.all = [...previous.all];
    this.#previous = previous;
    this.#weight = previous.weight;
    this.#hasRivals = previous.hasRivals;
  }

  remove(entry: FlagEntry): void {
    const index = this.#indexOf(entry);
    if (index === undefined) return;
    const [removed] = this.all.splice(index, 1);
    const keys = this.#changedKeys();
    keys.removed.push(...keys.list.splice(index, 1));
    this.#weight -= removed?.weight ?? 0;
  }

  /** Adds a flag, or replaces the flag with the same key and id. */
  put(entry: FlagEntry): void {
    const flag = prepareFlag(entry);
    const index = this.#indexOf(entry);
    if (index !== undefined) {
      this.#weight += flag.weight - (this.all[index]?.weight ?? 0);
      this.all[index] = flag;
      return;
    }
    const place = this.#placeOf(entry);
    this.#hasRivals ||= [place - 1, place].some((near) => this.all[near]?.entry.key === entry.key);
    this.all.splice(place, 0, flag);
    const keys = this.#changedKeys();
    keys.list.splice(place, 0, entry.key);
    keys.added.push(entry.key);
    this.#weight += flag.weight;
  }

  finish(): Segment {
    if (this.#hasRivals) return new Segment(this.all);
    const { keys: previous } = this.#previous;
    const keys = this.#keys === undefined ? previous : previous.change(this.#keys.list, this.#keys);
    return new Segment(this.all, { flags: this.all, keys, weight: this.#weight });
  }

  #changedKeys() {
    this.#keys ??= { list: [...this.#previous.keys.keys], added: [], removed: [] };
    return this.#keys;
  }

  #indexOf(entry: FlagEntry): number | undefined {
    const place = this.#placeOf(entry);
    const found = this.all[place]?.entry;
    return found !== undefined && compareEntries(found, entry) === 0 ? place : undefined;
  }

  /** The index of an entry, or where it would be. */
  #placeOf(entry: FlagEntry): number {
    return firstIndex(this.all, (flag) => compareEntries(flag.entry, entry) >= 0);
  }
}
