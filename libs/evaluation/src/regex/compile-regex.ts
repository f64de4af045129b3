import { RE2JS, RE2JSException, RE2JSSyntaxException } from "re2js";
import {
  countExpression,
  maxPatternLength,
  maxProgramSize,
  maxTextLength,
  maxTextLengthFor,
  maxTotalSize,
  searchMemoryBytes,
} from "./bounds.ts";
import { estimateClassWork, estimateSize } from "./estimate.ts";
import { type Program, shortestMatch } from "./shortest-match.ts";

type CompiledRegex =
  | {
      ok: true;
      test: (text: string) => boolean;
      /** Maximum length of a searched text. */
      maxTextLength: number;
      countsAs: number;
      /** Returns the length of the shortest text that could match. */
      shortestMatch: () => number;
    }
  /** The problem does not contain the expression. */
  | { ok: false; problem: string };

const tooLarge: CompiledRegex = {
  ok: false,
  problem:
    "it is too large. A repetition such as {1,63} counts 63 times, and nested repetitions multiply. Use + or * instead, fewer classes such as \\pL, or, under (?i), fewer or narrower ranges",
};

/** Matches expressions of literal characters alone. A plain text search replaces the engine for them. */
const plainText = /^[\w !"#%&',/:;<=>@~-]*$/;

/** Compiles an expression in RE2 syntax. It matches anywhere in a text, in linear time. */
export function compileRegex(pattern: string): CompiledRegex {
  if (pattern.length > maxPatternLength) {
    return { ok: false, problem: `it is longer than ${maxPatternLength} characters` };
  }
  const classWork = estimateClassWork(pattern);
  if (estimateSize(pattern) > 4 * maxProgramSize) return tooLarge;
  if (countExpression(0, classWork) > maxTotalSize) return tooLarge;
  try {
    const regex = RE2JS.compile(pattern);
    limitSearchMemory(regex);
    const program: Program = regex.re2().prog;
    const programSize = weigh(program);
    if (programSize > maxProgramSize) return tooLarge;
    const countsAs = countExpression(programSize, classWork);
    const isPlain = plainText.test(pattern);
    return {
      ok: true,
      test: isPlain ? (text) => text.includes(pattern) : (text) => regex.test(text),
      maxTextLength: isPlain ? maxTextLength : maxTextLengthFor(programSize),
      countsAs,
      shortestMatch: () => shortestMatch(program),
    };
  } catch (error) {
    if (error instanceof RE2JSSyntaxException) return { ok: false, problem: error.error };
    if (error instanceof RE2JSException) return { ok: false, problem: "it does not compile" };
    throw error;
  }
}

/**
 * Limits the DFA states that an expression caches between searches. Without this limit they grow to 8 MiB (test
 * search-memory). The engine discards them at the limit, and searches without them if that happens too often.
 */
function limitSearchMemory(regex: RE2JS): void {
  const states = regex.re2().dfa;
  states.stateBudget = searchMemoryBytes;
  states.memBudget = searchMemoryBytes;
}

/** Returns a lower bound of what an expression counts, without compiling it. */
export function countUncompiled(pattern: string): number {
  return countExpression(0, pattern.length > maxPatternLength ? 0 : estimateClassWork(pattern));
}

/**
 * Returns the number of instructions, weighted by their cost relative to comparing one character. A class of many
 * ranges, such as all letters of Unicode, costs a binary search.
 */
function weigh({ inst }: Program): number {
  let size = 0;
  for (const { runes } of inst) size += 1 + Math.floor(Math.log2(Math.max(1, runes.length / 2)));
  return size;
}
