import { describe, expect, it } from "@jest/globals";
import { createContext, emptyContext, explain } from "../src/index.ts";
import { condition, flagWithRollout, flagWithRules, given, oneRuleFlag } from "./flags.ts";

describe("given several rules", () => {
  const flag = flagWithRules(
    { id: "r1", name: "Staff", conditions: [condition("email", "ends_with", "@example.com")] },
    {
      conditions: [
        condition("country", "in", "DE,AT"),
        condition("targetingKey", "not_equals", "u2"),
      ],
      rollout_percentage: 0,
    },
    { conditions: [], value: false },
  );

  it("reports for each rule whether it was reached and matched, and the result of each condition", () => {
    const context = createContext(given({ id: "u1", country: "de" }));
    expect(explain(flag, context)).toEqual({
      value: false,
      variation: "off",
      reason: "split",
      rules: [
        {
          index: 0,
          id: "r1",
          name: "Staff",
          reached: true,
          matched: false,
          conditions: [
            {
              attribute: "email",
              operator: "ends_with",
              held: false,
              obstacle: "attribute_missing",
            },
          ],
        },
        {
          index: 1,
          reached: true,
          matched: true,
          inside_percentage: false,
          conditions: [
            { attribute: "country", operator: "in", held: true },
            { attribute: "targetingKey", operator: "not_equals", held: true },
          ],
        },
        { index: 2, reached: false, matched: false, conditions: [] },
      ],
    });
  });

  it("reaches none while the flag is disabled", () => {
    const { reason, rules } = explain({ ...flag, enabled: false }, emptyContext);
    expect(reason).toBe("disabled");
    expect(rules.map(({ reached }) => reached)).toEqual([false, false, false]);
  });

  it("returns no rules for a flag without rules", () => {
    expect(explain(flagWithRollout("flag", 100), emptyContext)).toEqual({
      value: true,
      variation: "on",
      reason: "static",
      rules: [],
    });
  });
});

describe("given a condition that does not hold", () => {
  it.each([
    [condition("a", "equals", "x"), {}, "attribute_missing"],
    [condition("a", "not_in", "x"), { a: [] }, "attribute_empty"],
    [condition("a", "gt", 5), { a: true }, "wrong_type"],
    [condition("a", "gt", 5), { a: "five" }, "not_comparable"],
    [condition("a", "lt", "2027-01-31T09:00:00Z"), { a: 5 }, "not_comparable"],
    [condition("a", "semver_gt", "1.0.0"), { a: 1.1 }, "wrong_type"],
    [condition("a", "semver_gt", "1.0.0"), { a: "one" }, "not_comparable"],
    [condition("a", "gt", 5), { a: ["x", "y"] }, "not_comparable"],
    [condition("a", "matches_regex", "^b+$"), { a: "b".repeat(5_000) }, "text_too_long"],
    [condition("a", "matches_regex", "^b+$"), { a: Array(5_000).fill("") }, "text_too_long"],
  ])("reports the obstacle: %j of %j", (asked, attributes, obstacle) => {
    const { rules } = explain(oneRuleFlag(asked), createContext(given(attributes)));
    expect(rules[0]?.conditions[0]).toEqual({
      attribute: "a",
      operator: asked.operator,
      held: false,
      obstacle,
    });
  });

  it.each([
    [condition("a", "gt", 5), { a: 5 }],
    [condition("a", "gt", 5), { a: ["x", 5] }],
    [condition("a", "not_equals", "x"), { a: "X" }],
  ])("reports no obstacle if the comparison is false: %j of %j", (asked, attributes) => {
    const { rules } = explain(oneRuleFlag(asked), createContext(given(attributes)));
    expect(rules[0]?.conditions[0]).not.toHaveProperty("obstacle");
  });

  it("never contains a value of the user", () => {
    const context = createContext(given({ id: "secret-1", a: "secret-2", b: ["secret-3"] }));
    const flag = oneRuleFlag(
      condition("a", "equals", "x"),
      condition("b", "gt", 5),
      condition("id", "contains", "y"),
    );
    expect(JSON.stringify(explain(flag, context))).not.toContain("secret");
  });
});
