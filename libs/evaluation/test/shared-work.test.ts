import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { RE2JS } from "re2js";
import { attributeName } from "../src/attribute-name.ts";
import { finderOf } from "../src/find-text.ts";
import { type AttributeValue, compile, createContext, emptyContext } from "../src/index.ts";
import { estimateClassWork, estimateSize } from "../src/regex/estimate.ts";
import { textNumber } from "../src/text-number.ts";
import { TextSet } from "../src/text-set.ts";
import { bestCpuMs } from "./cpu-time.ts";
import { condition, given, oneRuleFlag } from "./flags.ts";
import { runs } from "./thorough.ts";

describe("given one context and very many attributes", () => {
  const names = Array.from({ length: 100 }, (_, index) => `attribute-${index}`);
  const flags = names.map((name) => compile(oneRuleFlag(condition(name, "equals", name))));

  it("finds each of them, any number of times and in any order", () => {
    const present = names.filter((_, index) => index % 3 !== 0);
    const context = createContext(given(Object.fromEntries(present.map((name) => [name, name]))));
    const order = [...names.keys(), ...[...names.keys()].toReversed(), 0, 16, 0, 16, 32, 1, 17, 1];
    for (const index of order) {
      expect(flags[index]?.evaluate(context).value).toBe(index % 3 !== 0);
    }
    expect(flags.some(({ evaluate }) => evaluate(emptyContext).value)).toBe(false);
  });

  it("finds the same subjects under new numbers", () => {
    const attributes = given(Object.fromEntries(names.slice(0, 20).map((name) => [name, name])));
    const context = createContext(attributes);
    const found = (name: string) => context.find(name, attributeName(name).number);
    const first = names.slice(0, 20).map(found);
    // So many other names clear the map of numbers. These two subjects have lost their slots to the last two.
    for (let i = 0; i < 10_000; i++) attributeName(`other-${i}`);
    const again = names.slice(0, 20).map(found);
    expect(again.map((subject) => subject?.text)).toEqual(names.slice(0, 20));
    for (const index of [2, 3]) expect(again[index]).toBe(first[index]);
  });

  it("keeps contexts apart", () => {
    const [flag] = flags;
    const contexts = ["attribute-0", "other"].map((value) =>
      createContext(given({ "attribute-0": value })),
    );
    const values = [0, 1, 0, 1].map(
      (index) => flag?.evaluate(contexts[index] ?? emptyContext).value,
    );
    expect(values).toEqual([true, false, true, false]);
  });
});

describe("given sets of texts", () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom("a", "b", "\0", "é", "z"), maxLength: 6 }),
    fc.string({ unit: "binary" }),
  );
  const numbered = (folded: string) => ({ folded, foldedNumber: textNumber(folded) });

  it("contains exactly the texts of the set", () => {
    fc.assert(
      fc.property(fc.array(text), text, (texts, other) => {
        const set = new TextSet(() => texts);
        for (const each of texts) expect(set.has(numbered(each))).toBe(true);
        expect(set.has(numbered(other))).toBe(texts.includes(other));
      }),
      { numRuns: runs(2_000) },
    );
  });

  it("reads the texts at the first lookup", () => {
    let reads = 0;
    const set = new TextSet(() => {
      reads += 1;
      return ["text"];
    });
    expect(reads).toBe(0);
    for (let lookup = 0; lookup < 2; lookup += 1) set.has(numbered("text"));
    expect(reads).toBe(1);
  });

  it("distinguishes texts with the same number", () => {
    const set = new TextSet(() => ["first text"]);
    const { foldedNumber } = numbered("first text");
    expect(set.has({ folded: "other text", foldedNumber })).toBe(false);
  });

  it("assigns unique numbers to short ASCII texts", () => {
    const units = ["", "\0", "a", "\x7f", "0"];
    const texts = units.flatMap((a) => units.flatMap((b) => units.map((c) => `${a}${b}${c}`)));
    const distinct = new Set(texts);
    expect(new Set([...distinct].map(textNumber)).size).toBe(distinct.size);
  });
});

describe("given texts whose numbers select the same slot", () => {
  /** Number of texts. `slotOf` repeats the arithmetic of the table for sets of this size. */
  const count = 1_000;
  const slotOf = (text: string) => {
    const product = Math.imul(textNumber(text), 0x9e3779b1);
    return (product ^ (product >>> 15)) & 2_047;
  };
  const chosen: string[] = [];
  for (let i = 0; chosen.length < count; i++) {
    const text = `text-${i}`;
    if (slotOf(text) === 0) chosen.push(text);
  }

  it("contains exactly the texts of the set", () => {
    const set = new TextSet(() => chosen.slice(0, -1));
    const has = chosen.map((folded) => set.has({ folded, foldedNumber: textNumber(folded) }));
    expect(has).toEqual([...Array(count - 1).fill(true), false]);
  });

  it("does not scan the set for each of them", () => {
    const set = new TextSet(() => chosen);
    const asked = chosen.map((folded) => ({ folded, foldedNumber: textNumber(folded) }));
    const askAll = () => {
      for (let i = 0; i < 300; i++) for (const each of asked) set.has(each);
    };
    // It takes half a second if each lookup probes half of the others.
    expect(bestCpuMs(askAll, 5)).toBeLessThan(200);
  });
});

describe("given arrays that contain every code unit", () => {
  const units = Array.from({ length: 0x10000 }, (_, unit) => String.fromCharCode(unit));
  const texts = [...units, "from start to end"];
  const holds = (value: readonly string[], ...asked: Parameters<typeof condition>) =>
    compile(oneRuleFlag(condition(...asked))).evaluate(createContext(given({ a: value }))).value;

  it("searches texts as in any other array", () => {
    for (const value of [texts, texts.slice(1)]) {
      expect(holds(value, "a", "contains", "T TO")).toBe(true);
      expect(holds(value, "a", "contains", "xy")).toBe(false);
      expect(holds(value, "a", "starts_with", "from")).toBe(true);
      expect(holds(value, "a", "starts_with", "start")).toBe(false);
      expect(holds(value, "a", "ends_with", "end")).toBe(true);
      expect(holds(value, "a", "ends_with", "start")).toBe(false);
      expect(holds(value, "a", "not_contains", "xy")).toBe(true);
    }
  });

  it("does not match the separator of elements", () => {
    const value = ["a", "\0", "\0\0b", "\u0002"];
    for (const wanted of ["\u0001", "a\u0001", "\u0001a", "a\u0001\0", "a\0", ","]) {
      for (const operator of ["contains", "starts_with", "ends_with"] as const) {
        expect(holds(value, "a", operator, wanted)).toBe(false);
      }
    }
    expect(holds(value, "a", "contains", "\0b")).toBe(true);
    expect(holds([], "a", "contains", "")).toBe(false);
    expect(holds([""], "a", "ends_with", "")).toBe(true);
  });
});

describe("given a long text to search for", () => {
  it("finds it exactly if the engine's own search finds it", () => {
    const unit = fc.constantFrom("a", "b");
    const needle = fc.string({ unit, minLength: 64, maxLength: 80 });
    const around = fc.string({ unit, maxLength: 200 });
    fc.assert(
      fc.property(needle, around, around, fc.boolean(), (wanted, before, after, cut) => {
        const text = before + (cut ? wanted.slice(0, -1) : wanted) + after;
        expect(finderOf(wanted)(text)).toBe(text.includes(wanted));
      }),
      { numRuns: runs(500) },
    );
  });
});

describe("given the estimated size of a pattern", () => {
  it.each([
    ["abc", 3],
    ["a{10}", 20],
    ["(a{10}){10}", 230],
    ["\\x{10}{3}", 6],
    ["\\p{Greek}{3}", 6],
    ["[{900}\\]]{3}", 6],
    ["[]a]{3}", 6],
    ["\\{900}", 5],
    ["\\Qa{900}\\E", 10],
  ])("estimates %s at %i instructions", (pattern, size) => {
    expect(estimateSize(pattern)).toBe(size);
  });

  it("never estimates less than about half of the real size", () => {
    const { pattern } = fc.letrec<{ pattern: string }>((tie) => ({
      pattern: fc.oneof(
        { depthSize: "small", withCrossShrink: true },
        fc.constantFrom(
          "a",
          "[a-z]",
          "[^]a]",
          "\\pL",
          "\\d",
          "\\x{41}",
          ".",
          "^",
          "\\Qab\\E",
          "{2",
        ),
        tie("pattern").map((inner) => `(${inner})`),
        tie("pattern").map((inner) => `(?i:${inner})*`),
        fc
          .tuple(tie("pattern"), fc.constantFrom("{3}", "{2,}", "{0,4}", "?", "+", "*?"))
          .map(([inner, times]) => `(?:${inner})${times}`),
        fc.tuple(tie("pattern"), tie("pattern")).map((pair) => pair.join("")),
        fc.tuple(tie("pattern"), tie("pattern")).map((pair) => pair.join("|")),
      ),
    }));
    fc.assert(
      fc.property(pattern, (text) => {
        const instructions = RE2JS.compile(text).re2().numberOfInstructions();
        // The program has two more instructions, for the start and the match.
        expect(instructions).toBeLessThanOrEqual(2 * estimateSize(text) + 2);
      }),
      { numRuns: runs(1_000) },
    );
  });
});

describe("given the estimated work of compiling the classes of a pattern", () => {
  it.each([
    ["abc[a-z]+[^x]", 0],
    ["\\pL+[\\pN_]", 50],
    ["[ɐ-\u{10ffff}]", 0],
    ["(?i)[а-яё]", 1],
    ["(?i)[B-ϧ\\pL]\\W", 77],
    ["[\\W\\d]", 2],
    ["(?m-s:(?si:[\\x{0}-\\x{1000}]))", 95],
    ["(?i)[ɐ-\u{10ffff}ɐ-\\x{10ffff}]", 1_695],
    ["(?i)[\\x20-\\777]", 852],
    ["(?-i)[ɐ-\u{10ffff}]\\Q(?i)", 847],
    ["(?-i)[ɐ-\u{10ffff}]", 0],
    ["[abcdefghijklmnopqrst]", 2],
  ])("estimates %s at %i steps", (pattern, steps) => {
    expect(estimateClassWork(pattern)).toBe(steps);
  });
});

describe("given one text and every kind of comparison", () => {
  it("interprets the text as each comparison requires", () => {
    const value: AttributeValue = "1.0";
    const context = createContext(given({ a: value }));
    const holds = (...asked: Parameters<typeof condition>) =>
      compile(oneRuleFlag(condition(...asked))).evaluate(context).value;
    expect(holds("a", "equals", "1.0")).toBe(true);
    expect(holds("a", "gte", 1)).toBe(true);
    expect(holds("a", "semver_eq", "1.0.0")).toBe(true);
    expect(holds("a", "in", "1,1.0")).toBe(true);
    expect(holds("a", "matches_regex", "^1\\.0$")).toBe(true);
    expect(holds("a", "gte", "2027-01-31T09:00:00Z")).toBe(false);
  });
});
