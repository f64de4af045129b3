/**
 * RE2 searches in linear time, but "linear" is characters times instructions, and the instructions are
 * in the writer's hand: `(a?){1000}` is short. These bounds keep one search below about five
 * milliseconds and what one flag can cost within reason; docs/decisions/0074 has the reasons.
 */

/** UTF-16 code units of a pattern. */
export const maxPatternLength = 500;

/**
 * Weighted instructions of one expression. Enough for every pattern of that length without counted
 * repetitions of classes.
 */
export const maxProgramSize = 1_000;

/** UTF-16 code units of a text that is searched; a longer one does not match. */
export const maxTextLength = 4_096;

/**
 * Characters times weighted instructions of one search. The largest programs search texts of 150
 * characters, those of ordinary size (up to 36) all that `maxTextLength` allows.
 */
export const maxSteps = 150_000;

/**
 * Maximum size of the states that one expression keeps of its searches, by the engine's own reckoning. Ordinary
 * expressions need up to 9 KB, those with several alternatives more: with half of this bound, one of five words took
 * five times as long. The number of expressions is limited by `maxTotalSize` for each flag, not for a process.
 */
export const searchMemoryBytes = 32 * 1024;

/**
 * Of all expressions in the rules of one state, by `countExpression`: some thirty milliseconds of
 * compiling, which management spends on every change of rules and every edge after it.
 */
export const maxTotalSize = 5_000;

/** What one more expression counts, however small: it has its own start, memory and text. */
const perExpression = 30;

/**
 * What an expression counts towards `maxTotalSize`. The work of its classes, in steps of 5 µs, counts as
 * well, since the time that rules take to compile is bounded by this.
 */
export function countExpression(programSize: number, classWork: number): number {
  return perExpression + programSize + classWork;
}

/** The longest text, or list of texts, in which an expression of this size is searched. */
export function maxTextLengthFor(programSize: number): number {
  return Math.min(maxTextLength, Math.floor(maxSteps / programSize));
}
