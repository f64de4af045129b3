import { describe, expect, it } from "@jest/globals";
import { findRulesProblem, findUnknown, needsOf, type State } from "../src/index.ts";

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
  ])("are %s", (_, given, needs) => {
    expect(needsOf(given)).toEqual(needs);
  });

  it.each<[string, unknown]>([
    ["a rule that is null", null],
    ["conditions that are no array", { conditions: 7 }],
    ["a condition that is null", { conditions: [null] }],
    ["an operator that is no text", { conditions: [{ operator: {} }] }],
  ])("do not include %s", (_, rule) => {
    expect(findUnknown({ targeting_rules: [rule as object] })).toBeUndefined();
  });

  it("are found in a flag that uses more than this evaluator knows", () => {
    expect(findUnknown({ needs: ["buckets", "match-case"], targeting_rules: [] })).toBeUndefined();
    expect(findUnknown({ needs: ["buckets", "moon"], targeting_rules: [] })).toBe("moon");
    const rules = [{ conditions: [condition] }, { conditions: [{ operator: "near" }] }];
    expect(findUnknown({ targeting_rules: rules })).toBe("near");
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
