/**
 * Estimates the size of a pattern with its counted repetitions written out: about the number of instructions of the
 * program, or more. The estimate is made before compiling, because a pattern of 500 characters can compile to half a
 * million instructions, and compiling it would already block the process. This is not a parser; the engine rejects
 * invalid patterns.
 */
export function estimateSize(pattern: string): number {
  const outer: number[] = [];
  let size = 0;
  let lastItem = 0;
  for (const [token] of pattern.matchAll(tokens)) {
    if (token === "(") {
      outer.push(size);
      size = 0;
      lastItem = 0;
    } else if (token === ")") {
      // The capture of the group adds two instructions.
      lastItem = size + 2;
      size = (outer.pop() ?? 0) + lastItem;
    } else if (repetition.test(token)) {
      const times = Math.max(1, ...(token.match(/\d+/g) ?? []).map(Number));
      // An optional copy adds a branch.
      const repeated = (lastItem + 1) * times;
      size += repeated - lastItem;
      lastItem = repeated;
    } else {
      lastItem = token.startsWith("\\Q") ? token.length : 1;
      size += lastItem;
    }
  }
  return outer.reduce((sum, part) => sum + part, size);
}

/** Matches quoted literals, escapes (with their braces), classes, counted repetitions, and single characters. */
const tokens =
  /\\Q[\s\S]*?(?:\\E|$)|\\[pPx]\{[^}]*\}|\\[\s\S]|\[\^?\]?(?:\\[\s\S]|\[:[^\]]*:\]|[^\]\\])*\]?|\{\d+(?:,\d*)?\}|[\s\S]/g;

const repetition = /^\{\d/;

/**
 * Estimates the work of compiling the classes of a pattern, in steps of at most 5 µs, before compiling. A short class
 * can be costly: each `\pL` in it adds some hundred ranges. Under `(?i)` the engine iterates over the characters of
 * each range: 0.1 ms for each occurrence of `[B-ϧ]`.
 */
export function estimateClassWork(pattern: string): number {
  const ignoresCase = caseFlag.test(pattern);
  let steps = 0;
  for (const [token] of pattern.matchAll(tokens)) {
    if (property.test(token)) steps += perProperty(ignoresCase);
    else if (token.startsWith("[")) steps += workOfClass(token, ignoresCase);
  }
  return steps;
}

/** Steps of one property: up to 0.25 ms, for `\PL` in a class under `(?i)`. */
const perProperty = (ignoresCase: boolean) => (ignoresCase ? 50 : 25);

/** Characters of a range per step under `(?i)`, if all of them have two cases. */
const foldedPerStep = 35;

/** Approximate number of characters with case in Unicode. The further characters of a range count as caseless. */
const maxFolded = 3_000;
/** Characters without case per step. */
const othersPerStep = 160;

const charactersPerStep = 10;
/** Steps of an escape such as `\W`, which adds a few ranges. */
const perEscape = 1;

/** The last character with case. The engine does not iterate beyond it. */
const lastFolded = 0x1e943;

/** The flag can occur anywhere in the pattern. The estimate applies it to the whole pattern. */
const caseFlag = /\(\?[a-z]*i/i;
const property = /^\\[pP]/;

function workOfClass(token: string, ignoresCase: boolean): number {
  const parts = token.match(classParts) ?? [];
  let steps = Math.floor(parts.length / charactersPerStep);
  for (const [index, part] of parts.entries()) {
    if (property.test(part)) steps += perProperty(ignoresCase);
    else if (part.startsWith("\\")) steps += perEscape;
    if (part !== "-" || !ignoresCase) continue;
    const first = pointOf(parts[index - 1]) ?? 0;
    const last = Math.min(lastFolded, pointOf(parts[index + 1]) ?? lastFolded);
    steps += workOfRange(Math.max(0, last - first));
  }
  return steps;
}

function workOfRange(length: number): number {
  const folded = Math.min(length, maxFolded);
  return Math.ceil(folded / foldedPerStep + (length - folded) / othersPerStep);
}

const classParts = /\\[pPx]\{[^}]*\}|\\x[0-9a-fA-F]{2}|\\[\s\S]|[\s\S]/gu;

/** Returns the code point of a class part; undefined for other escapes and for a missing part. */
function pointOf(part: string | undefined): number | undefined {
  const hexadecimal = /^\\x\{?([0-9a-fA-F]+)/.exec(part ?? "")?.[1];
  if (hexadecimal !== undefined) return Number.parseInt(hexadecimal, 16);
  return part?.startsWith("\\") ? undefined : part?.codePointAt(0);
}
