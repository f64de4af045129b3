import { describe, expect, it, jest } from "@jest/globals";
import { RE2JS } from "re2js";
import { searchMemoryBytes } from "../src/regex/bounds.ts";
import { compileRegex } from "../src/regex/compile-regex.ts";

/** A text that creates a new DFA state with nearly every character. */
const text = Array.from({ length: 2_000 }, (_, i) => "ab"[Math.imul(i, 2_654_435_761) >>> 31]).join(
  "",
);

/** Compiles an expression, and returns its test function and the library's DFA states. */
function compile(pattern: string) {
  const compiling = jest.spyOn(RE2JS, "compile");
  const regex = compileRegex(pattern);
  const engine = compiling.mock.results[0]?.value as RE2JS;
  compiling.mockRestore();
  if (!regex.ok) throw new Error(regex.problem);
  return { test: regex.test, states: engine.re2().dfa };
}

describe("given an expression that caches more DFA states with every search", () => {
  it("keeps the cache within its limit and still finds matches", () => {
    const { test, states } = compile("[ab]*a[ab]{40}[xy]");
    let maxBytes = 0;
    for (let i = 0; i < 200; i += 10) {
      expect(test(text.slice(i))).toBe(false);
      expect(test(`${text.slice(i)}a${"b".repeat(40)}x`)).toBe(true);
      maxBytes = Math.max(maxBytes, states.stateBudget - states.memBudget);
    }
    expect(maxBytes).toBeLessThanOrEqual(searchMemoryBytes);
    expect(maxBytes).toBeGreaterThan(searchMemoryBytes / 2);
    expect(states.stateBudget).toBe(searchMemoryBytes);
  });
});
