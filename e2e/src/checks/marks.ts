import { randomInt } from "node:crypto";
import { findTraces, needlesFor, type Place, type Trace } from "./traces.ts";

/**
 * Texts that stand nowhere unless we put them there. All marks of one set begin and end with the same
 * random halves, around a number of their own, so that one search finds all of them, whole or cut in
 * two. A number that is random itself marks values that are no text.
 */
export type Marks = {
  /** A new mark, beginning with a letter; every other character is one of `a-zA-Z0-9`. */
  next(): string;
  /** The same number again and again: 15 digits, which a double holds exactly. */
  digits: number;
  /** Finds the marks and any further texts, however they were written. */
  traces(places: Iterable<Place>, furtherTexts?: readonly string[]): Trace[];
};

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const letters = 52;
const halfLength = 12;
const numberLength = 3;

export function createMarks(): Marks {
  const head = randomHalf();
  const tail = randomHalf();
  const digits = randomInt(7e13, 8e13) * 10 + 7;
  let count = 0;
  return {
    digits,
    next() {
      count += 1;
      return `${head}${count.toString(36).padStart(numberLength, "0")}${tail}`;
    },
    traces: (places, furtherTexts = []) =>
      findTraces(places, needlesFor([head, tail, String(digits), ...furtherTexts])),
  };
}

function randomHalf(): string {
  return Array.from({ length: halfLength }, (_, at) =>
    alphabet.charAt(randomInt(at === 0 ? letters : alphabet.length)),
  ).join("");
}
