import type { FlagEntry } from "@halyard/contracts";
import { compileAll, type EvaluateAll } from "@halyard/evaluation";
import { SegmentKeys } from "./flag-keys.ts";
import type { PreparedFlag } from "./prepared-flag.ts";

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

  get hasRivals(): boolean {
    return this.all.length !== this.flags.length;
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

/** The order of flags in segments. */
export function compareEntries(one: FlagEntry, other: FlagEntry): number {
  if (one.key !== other.key) return one.key < other.key ? -1 : 1;
  if (one.flag_id === other.flag_id) return 0;
  return one.flag_id < other.flag_id ? -1 : 1;
}

function newestOfEachKey(all: readonly PreparedFlag[]): readonly PreparedFlag[] {
  return all.filter(({ entry }, index) => all[index + 1]?.entry.key !== entry.key);
}
