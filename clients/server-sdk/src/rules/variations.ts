import { type CompiledFlag, callersDefault, emptyContext } from "@halyard/evaluation";
import type { FlagRules, Variation } from "./parse-rules.ts";

/** The variations of a typed flag, with their values and the number of their evaluations. */
export class Variations {
  /** Returns the index of the variation for a context, or `callersDefault`. */
  readonly indexFor: NonNullable<CompiledFlag["variationOf"]>;
  /** The index, if it is the same for every context. */
  readonly constantIndex: number | undefined;
  readonly #variations: readonly Variation[];
  #counts: number[];

  /** Freezes the values, because all evaluations return the same objects. */
  constructor({ variations = [] }: FlagRules, { constant, variationOf }: CompiledFlag) {
    this.indexFor = variationOf ?? (() => callersDefault);
    this.constantIndex = constant === undefined ? undefined : this.indexFor(emptyContext);
    this.#variations = variations;
    this.#counts = variations.map(() => 0);
    for (const { value } of variations) freeze(value);
  }

  /** Returns the value of a variation and counts an evaluation. */
  take(index: number): unknown {
    (this.#counts[index] as number) += 1;
    return this.valueAt(index);
  }

  valueAt(index: number): unknown {
    return this.#variations[index]?.value;
  }

  keyOf(index: number): string | null {
    return this.#variations[index]?.key ?? null;
  }

  /** Returns the evaluations by key since the last call, and sets them to zero. */
  takeCounts(): Map<string, number> {
    const counts = new Map<string, number>();
    this.#variations.forEach(({ key }, index) => {
      const count = this.#counts[index] as number;
      if (count > 0) counts.set(key, count);
    });
    this.#counts = this.#variations.map(() => 0);
    return counts;
  }
}

/** Freezes a JSON value at all levels. `parseRules` bounds their number. */
function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  Object.freeze(value);
  for (const member of Object.values(value)) freeze(member);
}
