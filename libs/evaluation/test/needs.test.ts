import { describe, expect, it } from "@jest/globals";
import {
  type Audience,
  compile,
  contextOf,
  findRulesProblem,
  findUnknown,
  findUnknownCondition,
  knownNeeds,
  needsOf,
  needsOfAudience,
  type State,
} from "../src/index.ts";
import { audiences, excludingFlags, lacking, needsWithout, references } from "./excluding-flags.ts";

const state: State = { enabled: true, rollout_percentage: 50, targeting_rules: [] };
const condition = { attribute: "plan", operator: "equals", value: "pro" } as const;
const withRule = (rule: object): State => ({
  ...state,
  targeting_rules: [{ conditions: [condition], ...rule }],
});

describe("the features that a flag needs", () => {
  it.each<[string, State, string[]]>([
    ["nothing, for what every release knows", withRule({ rollout_percentage: 20 }), []],
    [
      "buckets, for a percentage with decimals",
      { ...state, rollout_percentage: 12.5 },
      ["buckets"],
    ],
    ["buckets, for decimals in a rule", withRule({ rollout_percentage: 0.01 }), ["buckets"]],
    [
      "buckets, for an attribute that selects the bucket",
      { ...state, bucket_by: "company" },
      ["buckets"],
    ],
    ["buckets, for a seed", { ...state, bucket_seed: "spring" }, ["buckets"]],
    ["match-case", withRule({ conditions: [{ ...condition, match_case: true }] }), ["match-case"]],
    [
      "nothing, for match_case: false",
      withRule({ conditions: [{ ...condition, match_case: false }] }),
      [],
    ],
    ["audiences", withRule({ conditions: [{ audience: "beta" }] }), ["audiences"]],
    ["requires", { ...state, requires: [{ flag: "payments", is: "on" }] }, ["requires"]],
    ["nothing, for an empty list of requirements", { ...state, requires: [] }, []],
    [
      "requires, for a flag in a condition",
      withRule({ conditions: [{ flag: "payments", is: ["blue"] }] }),
      ["requires"],
    ],
  ])("are %s", (_, given, needs) => {
    expect(needsOf(given)).toEqual(needs);
  });

  it("include those of audiences, if they are given", () => {
    const list = { attribute: "id", count: 0, key: "00".repeat(16), chunks: [] };
    const audiences = new Map<string, Audience>([
      ["beta", { match: [[{ ...condition, match_case: true }]] }],
      ["staff", { match: [[condition]], list }],
    ]);
    const given = withRule({ conditions: [{ audience: "beta" }, { audience: "staff" }] });
    expect(needsOf(given)).toEqual(["audiences"]);
    expect(needsOf(given, (key) => audiences.get(key))).toEqual([
      ...["audiences", "lists", "match-case"],
    ]);
    expect([...audiences.values()].map(needsOfAudience)).toEqual([["match-case"], ["lists"]]);
    expect(findUnknown({ ...given, needs: knownNeeds })).toBeUndefined();
  });

  it("are unknown in an audience with an operator of a later release", () => {
    expect(findUnknownCondition([condition])).toBeUndefined();
    expect(findUnknownCondition([condition, { ...condition, operator: "near" }])).toBe("near");
    expect(findUnknownCondition([null as unknown as object, { audience: "beta" }])).toBeUndefined();
  });

  it.each<[string, unknown]>([
    ["a rule that is null", null],
    ["conditions that are no array", { conditions: 7 }],
    ["a condition that is null", { conditions: [null] }],
    ["a condition that is a text", { conditions: ["beta"] }],
    ["an operator that is no text", { conditions: [{ attribute: "plan", operator: {} }] }],
  ])("do not include %s", (_, rule) => {
    const given = { targeting_rules: [rule] } as Parameters<typeof findUnknown>[0];
    expect(findUnknown(given)).toBeUndefined();
    expect(needsOf({ ...state, ...given } as State)).toEqual([]);
  });

  it.each<[string, string, object]>([
    ["cohort", "a condition of an unknown kind", { cohort: "x" }],
    ["condition", "a condition without members", {}],
    ["is", "a value of `is` that is no list", { flag: "payments", is: "once" }],
    ["is", "a list of `is` that contains no texts", { flag: "payments", is: [{ at: 1 }] }],
    ["is", "a requirement without `is`", { flag: "payments" }],
  ])("are unknown (%s) with %s", (unknown, _, condition) => {
    const rules = [{ conditions: [condition], value: false }, { conditions: [] }];
    expect(findUnknown({ targeting_rules: rules })).toBe(unknown);
    expect(findUnknown({ targeting_rules: [], requires: [condition] })).toBe(unknown);
    expect(findUnknownCondition([condition])).toBe(unknown);
  });

  it("are found in a flag that uses more than this evaluator knows", () => {
    expect(findUnknown({ needs: ["buckets", "match-case"], targeting_rules: [] })).toBeUndefined();
    expect(findUnknown({ needs: ["buckets", "moon"], targeting_rules: [] })).toBe("moon");
    const rules = [{ conditions: [condition] }, { conditions: [{ operator: "near" }] }];
    expect(findUnknown({ targeting_rules: rules })).toBe("near");
  });
});

describe("given an evaluator that lacks a word of needs", () => {
  it.each(excludingFlags)(
    "$word withholds a flag that would include an excluded user by $part",
    (excluding) => {
      const { word, flag, user, ignored } = excluding;
      const context = contextOf(user);
      expect(compile(flag, references).evaluate(context).value).toBe(false);
      expect(compile(ignored, references).evaluate(context).value).toBe(true);
      const needs = needsOf(flag, (key) => audiences.get(key));
      expect(needs).toContain(word);
      expect(findUnknown({ ...flag, needs })).toBeUndefined();
      expect(findUnknown({ ...flag, needs: needsWithout(excluding) })).toBe(lacking(word));
    },
  );

  it("has such a flag for every word", () => {
    expect([...new Set(excludingFlags.map(({ word }) => word))].sort()).toEqual(knownNeeds);
  });

  it.each(["cohorts", "secrets", "weights", "", "__proto__", "Values"])(
    "such as %j, withholds the flag from all users",
    (word) => {
      expect(findUnknown({ needs: ["buckets", word], targeting_rules: [] })).toBe(word);
    },
  );

  it.each(["date", "Boolean", "", "constructor"])("withholds a flag of the type %j", (type) => {
    expect(findUnknown({ value_type: type, targeting_rules: [] })).toBe(type);
  });
});

describe("rules that are written", () => {
  it.each([0.07, 12.25, 99.99, 100, 33.3, 0.29])("may have %d percent", (rollout_percentage) => {
    expect(findRulesProblem([{ conditions: [], rollout_percentage }])).toBeUndefined();
  });

  it.each([0.001, 12.345, 99.999])("may not have %d percent", (rollout_percentage) => {
    expect(findRulesProblem([{ conditions: [], rollout_percentage }])?.pointer).toBe(
      "/0/rollout_percentage",
    );
  });

  it.each(["gt", "semver_eq", "matches_regex"] as const)(
    "may not match case with %s",
    (operator) => {
      const rules = [
        { conditions: [{ attribute: "a", operator, value: "1.0.0", match_case: true }] },
      ];
      expect(findRulesProblem(rules)?.pointer).toBe("/0/conditions/0/match_case");
    },
  );
});
