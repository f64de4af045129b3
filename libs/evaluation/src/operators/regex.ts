import { compileRegex } from "../regex/compile-regex.ts";
import type { Comparison } from "./operator.ts";

/** Compiles `matches_regex`, the only case-sensitive string operator. */
export function compileMatchesRegex(pattern: string): Comparison | undefined {
  const regex = compileRegex(pattern);
  if (!regex.ok) return undefined;
  const { test, maxTextLength: longest } = regex;
  return {
    holds: ({ text }) => text.length <= longest && test(text),
    negated: false,
    obstacle: ({ text }) => (text.length > longest ? "text_too_long" : undefined),
    // Many short texts cost as much as a long one, so the bound applies to the joined length of an array.
    holdsForAny: ({ subjects, joinedLength }) =>
      joinedLength <= longest && subjects.some(({ text }) => test(text)),
    obstacleForAll: ({ joinedLength }) => (joinedLength > longest ? "text_too_long" : undefined),
  };
}
