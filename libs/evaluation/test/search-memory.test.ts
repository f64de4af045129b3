import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "@jest/globals";
import { RE2JS } from "re2js";
import { searchMemoryBytes } from "../src/regex/bounds.ts";
import { createSearchMemory } from "../src/regex/search-memory.ts";

const bounds = { allowanceBytes: 8 * 1024, togetherBytes: 64 * 1024 };
const usedBytes = (regex: RE2JS) => regex.re2().dfa.stateBudget - regex.re2().dfa.memBudget;

/** Brings about a new state with nearly every character. */
const hungry = (index: number) => RE2JS.compile(`[ab]*a[ab]{40}[x${index % 10}]`);
const text = Array.from({ length: 2_000 }, (_, i) => "ab"[(i * i + (i >> 3)) % 2]).join("");

describe("given expressions that remember ever more of their searches", () => {
  it("keeps each within its allowance, and finds what there is to find", () => {
    const { searchIn } = createSearchMemory(bounds);
    const regex = hungry(0);
    const search = searchIn(regex);
    for (let i = 0; i < 20; i++) {
      expect(search(text.slice(i))).toBe(false);
      expect(search(`${text.slice(i)}a${"b".repeat(40)}x`)).toBe(true);
      expect(usedBytes(regex)).toBeLessThanOrEqual(bounds.allowanceBytes);
    }
  });

  it("makes all forget when they remember too much together", () => {
    const { searchIn } = createSearchMemory(bounds);
    const regexes = Array.from({ length: 30 }, (_, index) => hungry(index));
    let mostTogether = 0;
    for (const search of regexes.map(searchIn)) {
      expect(search(text)).toBe(false);
      const together = regexes.reduce((sum, regex) => sum + usedBytes(regex), 0);
      mostTogether = Math.max(mostTogether, together);
    }
    expect(mostTogether).toBeLessThanOrEqual(bounds.togetherBytes);
    expect(mostTogether).toBeGreaterThan(bounds.togetherBytes / 2);
  });

  it("goes on counting after all have forgotten, and forgets again", () => {
    const { searchIn } = createSearchMemory(bounds);
    const regexes = Array.from({ length: 30 }, (_, index) => hungry(index));
    const searches = regexes.map(searchIn);
    for (let round = 0; round < 5; round++) {
      for (const search of searches) {
        search(text.slice(round));
        const together = regexes.reduce((sum, regex) => sum + usedBytes(regex), 0);
        expect(together).toBeLessThanOrEqual(bounds.togetherBytes);
      }
    }
  });
});

describe("given expressions whose flags are gone", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  /** What is reached weakly is kept until the present task ends. */
  const nextTask = () => new Promise((resolve) => setImmediate(resolve));

  it("does not keep them, though they were searched in", async () => {
    const memory = createSearchMemory(searchMemoryBytes);
    const searched = (index: number) => {
      const regex = hungry(index);
      memory.searchIn(regex)(text);
      return new WeakRef(regex.re2());
    };
    const programs = Array.from({ length: 10 }, (_, index) => searched(index));
    await nextTask();
    collectGarbage();
    expect(programs.map((each) => each.deref())).toEqual(Array(10).fill(undefined));
  });
});
