import type { Elements } from "./subject.ts";
import { firstSharedNumber, textNumber } from "./text-number.ts";

/**
 * A list of folded texts that is asked about texts whose number is known: a user's country gets its number once
 * and is then looked for in the lists of many flags. The texts' numbers stand in a table of at least
 * twice their count, each at the place that it names or at one of the next; the texts themselves are
 * looked at only where others may have the same number.
 *
 * Numbers are easily found that name the same place. Texts that would stand too far from theirs are kept
 * in an ordinary set, so that no list is slow to ask.
 */
export class TextSet {
  readonly #items: readonly string[];
  readonly #texts: string[] = [];
  readonly #numbers: number[] = [];
  readonly #mask: number;
  readonly #crowdedOut = new Set<string>();

  constructor(texts: readonly string[]) {
    this.#items = texts;
    const size = 2 ** Math.ceil(Math.log2(Math.max(1, texts.length) * 2));
    this.#mask = size - 1;
    for (let slot = 0; slot < size; slot++) {
      this.#texts.push("");
      this.#numbers.push(free);
    }
    for (const folded of texts) this.#add({ folded, foldedNumber: textNumber(folded) });
  }

  has(asked: Numbered): boolean {
    const mask = this.#mask;
    const numbers = this.#numbers;
    const number = asked.foldedNumber;
    let slot = mixBits(number) & mask;
    for (let looked = 0; looked < maxProbes; looked++, slot = (slot + 1) & mask) {
      const there = numbers[slot];
      if (there === number && (number < firstSharedNumber || this.#texts[slot] === asked.folded)) {
        return true;
      }
      if (there === free) return false;
    }
    return this.#crowdedOut.has(asked.folded);
  }

  /** The same for any element of an array, by whichever is less: asking for each element, or for each text. */
  hasAnyOf(elements: Elements): boolean {
    if (elements.subjects.length <= this.#items.length) {
      return elements.subjects.some((element) => this.has(element));
    }
    const { texts } = elements;
    return this.#items.some((item) => texts.has(item));
  }

  #add(text: Numbered): void {
    if (this.has(text)) return;
    let slot = mixBits(text.foldedNumber) & this.#mask;
    for (let looked = 0; looked < maxProbes; looked++, slot = (slot + 1) & this.#mask) {
      if (this.#numbers[slot] !== free) continue;
      this.#numbers[slot] = text.foldedNumber;
      this.#texts[slot] = text.folded;
      return;
    }
    this.#crowdedOut.add(text.folded);
  }
}

type Numbered = { readonly folded: string; readonly foldedNumber: number };

/** No text has it. */
const free = 0;

/** Places that are looked at. Half of all are free, so few texts that nobody chose stand so far. */
const maxProbes = 16;

/** Own numbers are alike where texts end alike; their places are not to be. */
function mixBits(number: number): number {
  const product = Math.imul(number, 0x9e3779b1);
  return product ^ (product >>> 15);
}
