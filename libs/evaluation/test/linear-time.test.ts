import { describe, expect, it } from "@jest/globals";
import {
  type AttributeValue,
  type Condition,
  compile,
  createContext,
  explain,
  findRulesProblem,
  parseInstant,
  type ResolvedState,
  readAttributes,
  type Scalar,
} from "../src/index.ts";
import { averageCpuMs, bestCpuMs } from "./cpu-time.ts";
import { condition, flagWithRollout, given, oneRuleFlag } from "./flags.ts";

/**
 * Maximum number of measurements. Work that seems to grow too fast is measured again, because quadratic work does so
 * every time. Four times the length may take eight times the work, because garbage collection can double it. Quadratic
 * work would be sixteen times as much, and take seconds at these lengths.
 */
const attempts = 3;

const bestMs = (work: () => unknown, times = 7): number => bestCpuMs(work, times);

/** Shorter times are too imprecise to determine growth. */
const measurableMs = 2;

function growsLinearly(workOf: (size: number) => () => unknown, size: number): boolean {
  const short = averageCpuMs(workOf(size / 2));
  const long = averageCpuMs(workOf(2 * size));
  return long < measurableMs || (long < 8 * short && long < 1_000);
}

function expectLinear(workOf: (size: number) => () => unknown, size: number): void {
  let isLinear = false;
  for (let i = 0; i < attempts && !isLinear; i++) isLinear = growsLinearly(workOf, size);
  expect(isLinear).toBe(true);
}

const evaluation = (flag: ResolvedState, attributes: Record<string, AttributeValue>) => () =>
  compile(flag).evaluate(createContext(given(attributes)));

describe("given contexts designed to be slow", () => {
  const half = (length: number) => "a".repeat(length / 2);
  it.each<[string, (size: number) => Condition, (size: number) => AttributeValue]>([
    [
      "a text that nearly contains a long one at every position",
      () => condition("a", "contains", `${half(10_000)}b${half(10_000)}`),
      (size) => "a".repeat(size),
    ],
    [
      "a text that contains all of a periodic one except its end",
      () => condition("a", "not_contains", `${"ab".repeat(5_000)}c`),
      (size) => "ab".repeat(size / 2),
    ],
    [
      "a long text with capitals beyond ASCII",
      () => condition("a", "equals", "x"),
      (size) => "É𐐀".repeat(size / 3),
    ],
    [
      "an array of many elements",
      () => condition("a", "not_in", "x,y,z"),
      (size) => Array(size).fill("É"),
    ],
    [
      "a version of many digits",
      () => condition("a", "semver_gt", "9".repeat(10_000)),
      (size) => `1.0.0-${"1.".repeat(size / 2)}1`,
    ],
    [
      "a version that fails at its end",
      () => condition("a", "semver_gt", "1.0.0"),
      (size) => `1.0.0-${"0a".repeat(size / 2)}+`,
    ],
    [
      "a number of many digits",
      () => condition("a", "gt", 5),
      (size) => `${"9".repeat(size / 2)}.${"9".repeat(size / 2)}x`,
    ],
    [
      "a text that is nearly a date-time",
      () => condition("a", "gt", "2027-01-31T09:00:00Z"),
      (size) => `2027-01-31T09:00:00.${"0".repeat(size)}`,
    ],
  ])("takes linear time for %s", (_, asked, value) => {
    expectLinear((size) => {
      const flag = oneRuleFlag(asked(size));
      return evaluation(flag, { a: value(size) });
    }, 65_536);
  });

  it("takes linear time for long ids", () => {
    expectLinear(
      (size) => evaluation(flagWithRollout("flag", 50), { id: "é".repeat(size) }),
      65_536,
    );
  });

  it("takes linear time for very many attributes", () => {
    expectLinear((size) => {
      const source = Object.fromEntries(Array.from({ length: size }, (_, i) => [`a${i}`, "x"]));
      return () => readAttributes(source, "reject");
    }, 20_000);
  });

  it("takes linear time to reject an invalid instant", () => {
    expectLinear((size) => () => parseInstant(`2027-01-31T09:00:00.${"1".repeat(size)}`), 65_536);
  });
});

describe("given an array with the maximum number of elements of a request", () => {
  const elementCount = 30_000;
  /** Maximum time. Scanning the elements for each condition takes a second or more. */
  const longestMs = 250;
  const items = Array.from({ length: 1_000 }, (_, index) => `item-${index}`);

  it.each<[name: string, count: number, Condition, element: (index: number) => Scalar]>([
    ["equals", 4_900, condition("a", "equals", "no"), (index) => index % 10],
    ["not_equals", 4_900, condition("a", "not_equals", "No"), () => "É"],
    ["in a short list", 4_900, condition("a", "in", "x,y,z"), () => "q"],
    ["in a long list", 480, condition("a", "in", items), (index) => index],
    ["not_in", 480, condition("a", "not_in", items), (index) => index],
    ["contains", 4_900, condition("a", "contains", "yz"), () => "y"],
    ["not_contains", 2_000, condition("a", "not_contains", "y".repeat(100)), () => "y"],
    ["starts_with", 4_900, condition("a", "starts_with", "xy"), () => "y"],
    ["ends_with", 4_900, condition("a", "ends_with", "yx"), () => "y"],
    ["gt", 4_900, condition("a", "gt", 10), (index) => index % 10],
    ["lte", 4_900, condition("a", "lte", -1), (index) => `${index % 10}`],
    ["an instant", 4_900, condition("a", "gt", "2027-01-31T09:00:00Z"), () => "a"],
    ["semver_gt", 4_900, condition("a", "semver_gt", "10"), (index) => `${index % 10}`],
    ["semver_eq", 4_900, condition("a", "semver_eq", "5.0.1"), (index) => `${index % 10}`],
    ["matches_regex", 4_900, condition("a", "matches_regex", "[xz]"), () => "y"],
  ])("evaluates %s quickly, %i times", (_, count, asked, element) => {
    const attributes = given({ a: Array.from({ length: elementCount }, (__, i) => element(i)) });
    const { evaluate } = compile(oneRuleFlag(asked));
    const run = () => {
      const context = createContext(attributes);
      for (let i = 0; i < count; i++) evaluate(context);
    };
    expect(bestMs(run, 3)).toBeLessThan(longestMs);
  });

  it("explains quickly which conditions could not be compared", () => {
    const attributes = given({ a: Array(elementCount).fill("y") });
    const rules = Array(100).fill({ conditions: Array(49).fill(condition("a", "gt", 1)) });
    const flag = { ...oneRuleFlag(), targeting_rules: rules };
    expect(bestMs(() => explain(flag, createContext(attributes)), 3)).toBeLessThan(longestMs);
  });
});

describe("given expressions designed to be slow", () => {
  const letters = (length: number, from: string) =>
    Array.from({ length }, (_, i) => from[(i * i + (i >> 3)) % from.length]).join("");

  /** Far above the expected few milliseconds, for slow machines. A stall takes seconds. */
  const longestMs = 100;

  it.each([
    "(a+)+[!?]",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(a|aa)+[!?]",
    "(a|b)*a(a|b){100}[!?]",
    "[ab]*a[ab]{90}[!?]",
    "[ab]*a[ab]{230}[!?]",
    "(?s).*a.{200}[!?]",
    "(a?){120}a{120}[!?]",
    "((a?){15}){15}[!?]",
    "(?:.?){300}[!?]",
    "(?:\\w+\\s*){50}[!?]",
    "(((a*)*b*)*c*)*[!?]",
    "(?:\\ba?\\b|a|b){80}[!?]",
    "\\pL*a\\pL{60}[!?]",
    "(?i)(?:k|s|ſ|\\x{212a}){100}[!?]",
    `${"a*".repeat(240)}[!?]`,
    `(?:${"[ab]a|".repeat(60)}b){3}[!?]`,
  ])("searches %s quickly in every text", (pattern) => {
    const asked = condition("a", "matches_regex", pattern);
    expect(findRulesProblem([{ conditions: [asked] }])).toBeUndefined();
    const { evaluate } = compile(oneRuleFlag(asked));
    for (const length of [150, 248, 412, 970, 2_048, 4_096]) {
      for (const from of ["a", "ab", "a b", "abé語", "kKsſ"]) {
        const context = createContext(given({ a: letters(length, from) }));
        expect(bestMs(() => evaluate(context), 3)).toBeLessThan(longestMs);
      }
      const elements = letters(length, "ab").split("");
      const context = createContext(given({ a: elements }));
      expect(bestMs(() => evaluate(context), 3)).toBeLessThan(longestMs);
    }
  });

  it.each([
    "((((((x{10}){10}){10}){10}){10}){10}",
    `(?:${"a?".repeat(200)}){1000}`,
    "(?:(?:(?:x{0,9}){0,9}){0,9}){0,9}",
    `(?:${"\\pL".repeat(150)}){1000}`,
  ])("rejects %s before compiling it", (pattern) => {
    const work = () => compile(oneRuleFlag(condition("a", "matches_regex", pattern)));
    expect(work().constant).toMatchObject({ reason: "default" });
    expect(bestMs(work)).toBeLessThan(longestMs);
  });

  it.each([
    ["b$", 4_096],
    [`${"a".repeat(499)}b`, 4_096],
    ["(a?){120}a{120}b$", 248],
    ["((a?){15}){15}b$", 160],
  ])("searches %s in texts of at most %i characters", (pattern, longest) => {
    const flag = oneRuleFlag(condition("a", "matches_regex", pattern));
    const explained = (a: AttributeValue) => explain(flag, createContext(given({ a })));
    const tooLong = [{ matched: false, conditions: [{ held: false, obstacle: "text_too_long" }] }];
    expect(explained(`${"a".repeat(longest - 1)}b`).value).toBe(true);
    expect(explained(`${"a".repeat(longest)}b`)).toMatchObject({ value: false, rules: tooLong });
    expect(explained([`${"a".repeat(longest - 3)}b`, "c"]).value).toBe(true);
    expect(explained([`${"a".repeat(longest - 2)}b`, "c"])).toMatchObject({
      value: false,
      rules: tooLong,
    });
  });

  it.each([
    "(?s).*a.{200}[!?]",
    "(a?){120}a{120}[!?]",
    "(a|b)*a(a|b){100}[!?]",
    "(?:\\w+\\s*){50}[!?]",
  ])("does not search %s in a text of 64 KiB", (pattern) => {
    const { evaluate } = compile(oneRuleFlag(condition("a", "matches_regex", pattern)));
    const context = createContext(given({ a: letters(65_536, "ab") }));
    expect(bestMs(() => evaluate(context), 3)).toBeLessThan(10);
  });

  it("compiles them once, no matter how often the flag is explained", () => {
    const many = Array(14).fill(condition("a", "matches_regex", "(?i)[ɐ-\\x{1e900}]"));
    const flag = oneRuleFlag(...many);
    const compilingMs = averageCpuMs(() => compile(flag));
    const context = createContext(given({ a: "a" }));
    const compiled = compile(flag);
    expect(averageCpuMs(() => explain(compiled, context))).toBeLessThan(compilingMs / 5);
  });

  /** The maximum of a state takes about 30 ms. Without the bounds it takes up to 25 s. */
  const maxTogetherMs = 300;

  it.each([
    `(?i)[${"ɐ-\u{10ffff}".repeat(120)}]`,
    `(?i)[${"ɐ-\u{10ffff}".repeat(9)}]`,
    `(?i)[${"B-\u0428".repeat(100)}]`,
    "(?i)[ɐ-\\x{1e900}]",
    "(?i)[ɐ-\\x{10fff}]".repeat(28),
    `(?i)[${"\\pL".repeat(160)}]`,
    `(?i)[${"\\PL".repeat(10)}]`,
    `${"\\pL|".repeat(120)}\\pN`,
    `(?i)[${"\\W\\w".repeat(120)}]`,
    `(?i)\\pL${"|k|語".repeat(110)}`,
  ])("rejects rules that would take long to compile in total: %s", (pattern) => {
    const conditions = Array(4_900).fill(condition("a", "matches_regex", pattern));
    const check = () => findRulesProblem([{ conditions }]);
    expect(check()?.pointer).toMatch(/value$/);
    expect(bestMs(check, 3)).toBeLessThan(maxTogetherMs);
  });
});
