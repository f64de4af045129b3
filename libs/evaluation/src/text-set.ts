import type { Elements } from "./subject.ts";
import { firstSharedNumber, textNumber } from "./text-number.ts";

/**
 * A set of folded texts for lookups by number: a user's country gets its number once and is then looked up in the lists
 * of many flags. The numbers are stored in a hash table with linear probing, which is at most half full. Texts are
 * compared only if their number can be shared. The first lookup builds the table, because it takes far longer than
 * everything else that compiles a flag, and most lists of a large environment are first needed later.
 *
 * Collisions are easy to construct. Texts without a free slot within `maxProbes` slots go to an ordinary set, so that
 * the lookup is fast for every list.
 */
export class TextSet {
  /** Undefined after the table is built. */
  #readTexts: (() => readonly string[]) | undefined;
  #items: readonly string[] = [];
  readonly #texts: string[] = [];
  readonly #numbers: number[] = [];
  #mask = 0;
  readonly #overflow = new Set<string>();

  /** Reads the folded texts at the first lookup. */
  constructor(readTexts: () => readonly string[]) {
    this.#readTexts = readTexts;
  }

  has(text: Numbered): boolean {
    if (this.#readTexts !== undefined) this.#build(this.#readTexts);
    const mask = this.#mask;
    const numbers = this.#numbers;
    const number = text.foldedNumber;
    let slot = mixBits(number) & mask;
    for (let probes = 0; probes < maxProbes; probes++, slot = (slot + 1) & mask) {
      const found = numbers[slot];
      if (found === number && (number < firstSharedNumber || this.#texts[slot] === text.folded)) {
        return true;
      }
      if (found === free) return false;
    }
    return this.#overflow.has(text.folded);
  }

  /** Returns whether any element of an array is in the set. Iterates over the shorter one of array and set. */
  hasAnyOf(elements: Elements): boolean {
    if (this.#readTexts !== undefined) this.#build(this.#readTexts);
    if (elements.subjects.length <= this.#items.length) {
      return elements.subjects.some((element) => this.has(element));
    }
    const { texts } = elements.folded;
    return this.#items.some((item) => texts.has(item));
  }

  #build(readTexts: () => readonly string[]): void {
    this.#readTexts = undefined;
    this.#items = readTexts();
    const size = 2 ** Math.ceil(Math.log2(Math.max(1, this.#items.length) * 2));
    this.#mask = size - 1;
    for (let slot = 0; slot < size; slot++) {
      this.#texts.push("");
      this.#numbers.push(free);
    }
    for (const folded of this.#items) this.#add({ folded, foldedNumber: textNumber(folded) });
  }

  #add(text: Numbered): void {
    if (this.has(text)) return;
    let slot = mixBits(text.foldedNumber) & this.#mask;
    for (let probes = 0; probes < maxProbes; probes++, slot = (slot + 1) & this.#mask) {
      if (this.#numbers[slot] !== free) continue;
      this.#numbers[slot] = text.foldedNumber;
      this.#texts[slot] = text.folded;
      return;
    }
    this.#overflow.add(text.folded);
  }
}

type Numbered = { readonly folded: string; readonly foldedNumber: number };

/** Marks a free slot. No text has this number. */
const free = 0;

/** Maximum number of slots examined. Half of the slots are free, so that ordinary texts rarely need this many. */
const maxProbes = 16;

/** Spreads numbers over the slots. Short texts with the same ending have equal low bits and would share slots. */
function mixBits(number: number): number {
  const product = Math.imul(number, 0x9e3779b1);
  return product ^ (product >>> 15);
}
