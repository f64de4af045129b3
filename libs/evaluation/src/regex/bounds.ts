/**
 * Bounds of regular expressions. RE2 searches in time linear in characters × instructions, but a short pattern such as
 * `(a?){1000}` can have many instructions. These bounds keep one search below about five milliseconds and limit the
 * cost of one flag. See docs/decisions/0074.
 */

/** Maximum length of a pattern in UTF-16 code units. */
export const maxPatternLength = 500;

/**
 * Maximum number of weighted instructions of one expression. Enough for every pattern of the maximum length without
 * counted repetitions of classes.
 */
export const maxProgramSize = 1_000;

/** Maximum length of a searched text in UTF-16 code units. A longer text does not match. */
export const maxTextLength = 4_096;

/**
 * Maximum product of characters and weighted instructions of one search. The largest programs search texts of up to 150
 * characters. Programs of ordinary size (up to 36) search texts of up to `maxTextLength`.
 */
const maxSteps = 150_000;

/**
 * Maximum size of the DFA states that one expression caches, as the engine counts it. Ordinary expressions need up to
 * 9 KB, and expressions with several alternatives more: with half of this bound, one of five words took five times as
 * long. `maxTotalSize` limits the number of expressions of a flag, not of a process.
 */
export const searchMemoryBytes = 32 * 1024;

/**
 * Maximum sum of `countExpression` over the rules of one state. It corresponds to about thirty milliseconds of
 * compiling, which management spends on every change of the rules, and then every edge.
 */
export const maxTotalSize = 5_000;

/** Fixed part of every expression, for its own start, memory and text. */
const perExpression = 30;

/**
 * Returns what an expression counts towards `maxTotalSize`. The work of compiling its classes is included, in steps of
 * 5 µs, because `maxTotalSize` bounds the compile time of rules.
 */
export function countExpression(programSize: number, classWork: number): number {
  return perExpression + programSize + classWork;
}

/** Returns the maximum length of a text, or of a joined list of texts, for an expression of this size. */
export function maxTextLengthFor(programSize: number): number {
  return Math.min(maxTextLength, Math.floor(maxSteps / programSize));
}
