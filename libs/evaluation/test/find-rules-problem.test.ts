import { describe, expect, it } from "@jest/globals";
import { findMatchProblem, findRulesProblem, operatorNames, operators } from "../src/index.ts";
import { condition } from "./flags.ts";

const problemOf = (...conditions: ReturnType<typeof condition>[]) =>
  findRulesProblem([{ conditions: [] }, { conditions }]);

describe("given valid rules", () => {
  it.each([
    condition("a", "equals", true),
    condition("a", "contains", ""),
    condition("a", "in", ""),
    condition("a", "in", ["x", 5, false]),
    condition("a", "gt", "-1.5e3"),
    condition("a", "lte", "2027-01-31T09:00+01"),
    condition("a", "semver_gte", "v2"),
    condition("a", "matches_regex", "^(a|b)*\\pL{2,5}$"),
    condition("a", "matches_regex", 5),
    condition("a", "matches_regex", "a?".repeat(250)),
    condition("a", "matches_regex", "(?:a|b)".repeat(71)),
    condition("a", "matches_regex", "\\x{1000}\\p{Greek}[{900}]\\Qa{900}\\E"),
    condition("a", "matches_regex", "x{386}"),
    condition("a", "matches_regex", "x".repeat(500)),
    condition("a", "matches_regex", "(?:x{900})?"),
    condition("a", "matches_regex", "^(?:x{400}|\\b)$"),
    condition("a", "matches_regex", "(?m)a$\\n^b"),
    condition("a", "matches_regex", "(?:a|^)b|(?:c$|d)e"),
    condition("a", "matches_regex", "a*^\\bb\\b$"),
    condition("a", "matches_regex", "\\B^$\\B"),
  ])("finds no problem in $operator $value", (fine) => {
    expect(problemOf(fine)).toBeUndefined();
  });

  it("accepts a hundred rules with an expression each", () => {
    const many = Array.from({ length: 100 }, (_, index) =>
      condition("email", "matches_regex", `@team-${index}\\.com$`),
    );
    expect(problemOf(...many)).toBeUndefined();
  });
});

describe("given an invalid condition", () => {
  it.each([
    [condition("a", "like" as "equals", "x"), "operator", "one of equals, not_equals"],
    [condition("a", "equals", ["x"]), "value", "not an array"],
    [condition("a", "in", 5), "value", "DE,AT,CH"],
    [condition("a", "not_in", true), "value", "DE,AT,CH"],
    [condition("a", "gt", true), "value", "such as 18"],
    [condition("a", "gt", "0x10"), "value", "such as 18"],
    [condition("a", "lt", "2027-01-31"), "value", "2027-01-31T09:00:00Z"],
    [condition("a", "semver_eq", 1.2), "value", "as a text"],
    [condition("a", "semver_eq", "1.2.x"), "value", "2.3.0"],
    [condition("a", "matches_regex", "(a"), "value", "missing closing )"],
    [condition("a", "matches_regex", "(?!a)"), "value", "RE2 syntax"],
    [condition("a", "matches_regex", "(a)\\1"), "value", "RE2 syntax"],
    [condition("a", "matches_regex", "a".repeat(501)), "value", "longer than 500"],
    [condition("a", "matches_regex", "(?:a{900}b{900})"), "value", "too large"],
    [condition("a", "matches_regex", "\\pL{500}"), "value", "too large"],
    [
      condition("a", "matches_regex", "x{387}"),
      "value",
      "at least 387 characters, and texts longer than 385 are not searched",
    ],
    [condition("a", "matches_regex", "\\x{1F600}{300}"), "value", "at least 600 characters"],
    [condition("a", "matches_regex", "(?:a{200}|b{201}c*){2}"), "value", "at least 400 characters"],
    [condition("a", "matches_regex", "a[^\\x{0}-\\x{10FFFF}]"), "value", "no text matches it"],
    [
      condition("a", "matches_regex", `(?i)[${"ɐ-\u{10ffff}".repeat(9)}]`),
      "value",
      "narrower ranges",
    ],
  ])("returns the position and the expected value: %j", (invalid, field, words) => {
    const problem = problemOf(condition("fine", "equals", "x"), invalid);
    expect(problem?.pointer).toBe(`/1/conditions/1/${field}`);
    expect(problem?.expected).toContain(words);
  });

  it.each(["$a", "a^b", "\\b\\B", "^$a", "a\\zb?c", "(?:a|b^)+\\Ac", "(?:$|^$)\\n", "x{400}|b$c"])(
    "rejects %s, whose assertions no text satisfies",
    (pattern) => {
      expect(problemOf(condition("a", "matches_regex", pattern))?.expected).toMatch(
        /no text matches it|at least 400 characters/,
      );
    },
  );

  it("does not repeat a long expression", () => {
    const problem = problemOf(condition("a", "matches_regex", `${"private".repeat(60)}(`));
    expect(problem?.expected).not.toContain("privateprivate");
  });
});

describe("given expressions that are too large only in total", () => {
  it("returns the position of the first one beyond the limit", () => {
    const large = condition("a", "matches_regex", "[a-z]{1,450}");
    expect(problemOf(large, large, large, large, large)).toBeUndefined();
    expect(problemOf(...Array(6).fill(large))?.pointer).toBe("/1/conditions/5/value");
  });

  it("counts classes by their compile time, and names the costliest constructs", () => {
    const wide = condition("a", "matches_regex", `(?i)[${"B-ϧ".repeat(160)}]`);
    expect(problemOf(wide)).toBeUndefined();
    const problem = problemOf(wide, wide);
    expect(problem?.pointer).toBe("/1/conditions/1/value");
    expect(problem?.expected).toContain("wide ranges such as [\\x{80}-\\x{ffff}] under (?i)");
  });

  it.each([
    ["e-mail addresses", 70, "(?i)^[a-z0-9._%+-]+@team\\.[a-z0-9.-]+\\.[a-z]{2,}$"],
    ["names in any script", 30, "^[\\pL\\pM][\\pL\\pM' -]*$"],
    ["names with accents", 35, "(?i)^[a-zà-öø-ÿ' -]{2,20}$"],
    ["Cyrillic and Greek words", 60, "(?i)^[а-яёα-ω]+(?: [а-яёα-ω]+)*$"],
    ["Chinese and Japanese words", 20, "(?i)^[a-z一-鿿ぁ-んァ-ヶ]+$"],
    ["words", 75, "one|two|three|four|five|six|seven"],
  ])("accepts expressions of ordinary size: %s, %i times", (_what, times, pattern) => {
    expect(
      problemOf(...Array(times).fill(condition("a", "matches_regex", pattern))),
    ).toBeUndefined();
  });
});

describe("given the catalogue of operators", () => {
  it("lists each operator once, with a description and an example", () => {
    expect(operators.map(({ name }) => name)).toEqual([...operatorNames]);
    for (const { name, description, example } of operators) {
      expect(example).toContain(` ${name} `);
      expect(description).toMatch(/\.$/);
    }
  });

  it("contains only examples that are accepted", () => {
    for (const { example } of operators) {
      const [attribute = "", operator = "", ...value] = example.split(" ");
      expect(
        problemOf(condition(attribute, operator as "equals", value.join(" "))),
      ).toBeUndefined();
    }
  });
});

describe("given rules with references", () => {
  it("checks only the comparisons between them", () => {
    const conditions = [
      { audience: "beta" },
      { flag: "payments", is: "on" as const },
      condition("a", "gt", "tomorrow"),
    ];
    expect(findRulesProblem([{ conditions }])?.pointer).toBe("/0/conditions/2/value");
    expect(findRulesProblem([{ conditions: conditions.slice(0, 2) }])).toBeUndefined();
  });
});

describe("given the alternatives of an audience", () => {
  const fine = condition("a", "equals", "x");

  it.each<[string, Parameters<typeof findMatchProblem>[0], string | undefined]>([
    ["none", [], undefined],
    ["valid conditions", [[fine], [fine, condition("a", "matches_regex", "^a+$")]], undefined],
    ["an unknown operator", [[fine, condition("a", "near" as "equals", "x")]], "/0/1/operator"],
    ["an invalid value", [[fine], [condition("a", "gt", "x")]], "/1/0/value"],
    [
      "match_case where it has no meaning",
      [[{ ...condition("a", "gt", 5), match_case: true }]],
      "/0/0/match_case",
    ],
  ])("finds the first problem: %s", (_, match, pointer) => {
    expect(findMatchProblem(match)?.pointer).toBe(pointer);
  });

  it("bounds the expressions of all alternatives together", () => {
    const large = condition("a", "matches_regex", "\\pL{5}");
    const match = Array.from({ length: 20 }, () => Array(50).fill(large));
    const problem = findMatchProblem(match);
    const [alternative = Number.NaN] = problem?.pointer.split("/").slice(1).map(Number) ?? [];
    expect(problem?.expected).toMatch(/^fewer or smaller regular expressions/);
    expect(findMatchProblem([match[0]?.slice(0, 1) ?? []])).toBeUndefined();
    expect(findMatchProblem(match.slice(0, alternative))).toBeUndefined();
  });
});
