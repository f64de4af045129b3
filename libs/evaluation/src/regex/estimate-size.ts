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
