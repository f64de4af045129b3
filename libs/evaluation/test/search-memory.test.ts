import { describe, expect, it, jest } from "@jest/globals";
import { RE2JS } from "re2js";
import { searchMemoryBytes } from "../src/regex/bounds.ts";
import { compileRegex } from "../src/regex/compile-regex.ts";

/** Texts that bring about a new state with nearly every character. */
const text = Array.from({ length: 2_000 }, (_, i) => "ab"[Math.imul(i, 2_654_435_761) >>> 31]).join(
  "",
);

/** Compiles an expression that searches texts of this length, and returns it with the library's own object. */
function compile(pattern: string) {
  const compiling = jest.spyOn(RE2JS, "compile");
  const regex = compileRegex(pattern);
  const engine = compiling.mock.results[0]?.value as RE2JS;
  compiling.mockRestore();
  if (!regex.ok) throw new Error(regex.problem);
  return { test: regex.test, states: engine.re2().dfa };
}

describe("given an expression that keeps ever more states of its searches", () => {
  it("keeps it within its limit, and finds what there is to find", () => {
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
