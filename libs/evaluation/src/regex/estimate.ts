/**
 * How large a pattern becomes when its counted repetitions are written out: at least about the number
 * of instructions that it compiles to. It is asked before compiling, because a pattern of 500
 * characters can compile to half a million instructions, and refusing those afterwards would come too
 * late. Not a parser: what is no valid pattern is refused by the engine.
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
      // Two more for the group's own capture.
      lastItem = size + 2;
      size = (outer.pop() ?? 0) + lastItem;
    } else if (repetition.test(token)) {
      const times = Math.max(1, ...(token.match(/\d+/g) ?? []).map(Number));
      // An optional copy has a branch of its own.
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

/** Literal stretches, escapes (with their braces), classes, counted repetitions, and single characters. */
export const tokens =
  /\\Q[\s\S]*?(?:\\E|$)|\\[pPx]\{[^}]*\}|\\[\s\S]|\[\^?\]?(?:\\[\s\S]|\[:[^\]]*:\]|[^\]\\])*\]?|\{\d+(?:,\d*)?\}|[\s\S]/g;

const repetition = /^\{\d/;

/**
 * What the classes of a pattern cost to compile, in steps of at most 5 µs. It is asked before
 * compiling. A class has few characters and much work: each `\pL` in it brings some hundred ranges, and
 * under `(?i)` the engine goes through each range one character at a time, 0.1 ms for `[B-ϧ]`, as often as
 * it is written.
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

/** Up to 0.25 ms, for `\PL` in a class under `(?i)`. */
const perProperty = (ignoresCase: boolean) => (ignoresCase ? 50 : 25);

/** Characters of a range that are gone through in a step under `(?i)`, where all of them have two cases. */
const foldedPerStep = 35;

/** So many characters have another case, in all of Unicode; those of a longer range mostly have none. */
const maxFolded = 3_000;
const othersPerStep = 160;

/** Characters, and escapes such as `\W`, which bring a few ranges each. */
const charactersPerStep = 10;
const perEscape = 1;

/** Beyond the last letter that has another case nothing is gone through. */
const lastFolded = 0x1e943;

/** It may stand anywhere in the pattern, and is taken to hold for all of it. */
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

/** Undefined when it is an escape of another kind, or nothing. */
function pointOf(part: string | undefined): number | undefined {
  const hexadecimal = /^\\x\{?([0-9a-fA-F]+)/.exec(part ?? "")?.[1];
  if (hexadecimal !== undefined) return Number.parseInt(hexadecimal, 16);
  return part?.startsWith("\\") ? undefined : part?.codePointAt(0);
}
