import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type Attributes,
  compile,
  compileAudience,
  createContext,
  emptyContext,
  explain,
  operatorNames,
  type ResolvedState,
  type TargetingRule,
} from "../src/index.ts";
import { condition, flagWithRules, given, oneRuleFlag } from "./flags.ts";
import { runs } from "./thorough.ts";

const anything = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true });

/** Flags with the right structure, in which any value can be malformed. */
const malformedFlags = fc.record(
  {
    key: fc.oneof(fc.string(), anything),
    enabled: fc.oneof(fc.constant(true), anything),
    rollout_percentage: fc.oneof(fc.integer(), anything),
    targeting_rules: fc.oneof(
      fc.array(
        fc.oneof(
          fc.record(
            {
              conditions: fc.oneof(
                fc.array(
                  fc.oneof(
                    fc.record({
                      attribute: fc.oneof(fc.constantFrom("id", "country"), anything),
                      operator: fc.oneof(fc.constantFrom(...operatorNames), anything),
                      value: anything,
                    }),
                    fc.record({ audience: fc.oneof(fc.constant("beta"), anything) }),
                    fc.record({ flag: fc.oneof(fc.constant("other"), anything), is: anything }),
                    anything,
                  ),
                ),
                anything,
              ),
              value: fc.oneof(fc.boolean(), anything),
              rollout_percentage: anything,
              id: anything,
              name: anything,
            },
            { requiredKeys: [] },
          ),
          anything,
        ),
        { maxLength: 3 },
      ),
      anything,
    ),
    requires: fc.oneof(
      fc.array(
        fc.oneof(
          fc.record({ flag: fc.oneof(fc.constant("other"), anything), is: anything }),
          anything,
        ),
        { maxLength: 2 },
      ),
      anything,
    ),
  },
  { requiredKeys: [] },
);

const references = {
  audiences: new Map([["beta", compileAudience({ match: [[condition("id", "equals", "user")]] })]]),
  flags: new Map([["other", compile(flagWithRules())]]),
};

describe("given malformed flags", () => {
  it("returns an outcome and explains it", () => {
    const context = createContext(given({ id: "user", country: ["DE", 5, true] }));
    fc.assert(
      fc.property(malformedFlags, (malformed) => {
        const flag = malformed as ResolvedState;
        const outcome = compile(flag, references).evaluate(context);
        expect(typeof outcome.value).toBe("boolean");
        expect(explain(flag, context, references)).toMatchObject(outcome);
        expect(compile(flag).evaluate(emptyContext).variation).toMatch(/^(?:on|off)$/);
      }),
      { numRuns: runs(2_000) },
    );
  });

  it.each([null, undefined, 5, "flag", []])("treats %j as a disabled flag", (flag) => {
    expect(compile(flag as unknown as ResolvedState).constant).toMatchObject({
      reason: "disabled",
    });
    expect(explain(flag as unknown as ResolvedState, emptyContext).rules).toEqual([]);
  });

  it("matches no user by rules that are not an array", () => {
    const flag = { ...flagWithRules(), targeting_rules: null } as unknown as ResolvedState;
    expect(compile(flag).constant).toMatchObject({ value: false, reason: "default" });
  });

  it.each([Number.NaN, "50", null, -1])("includes no user at a percentage of %j", (percentage) => {
    const flag = { ...flagWithRules(), rollout_percentage: percentage } as unknown as ResolvedState;
    expect(compile(flag).evaluate(createContext(given({ id: "user" }))).value).toBe(false);
  });

  it("skips a rule whose value is not a boolean", () => {
    const rule = { conditions: [], value: "false" as unknown as boolean };
    expect(compile(flagWithRules(rule)).constant).toMatchObject({ reason: "default" });
  });

  it.each<[string, object]>([
    ["a value that is a text", { conditions: [{ audience: "beta" }], value: "yes" }],
    ["conditions that are an object", { conditions: { 0: { audience: "beta" } } }],
    ["an unknown audience in such conditions", { conditions: { 0: { audience: "x" } } }],
    ["an unknown flag in such conditions", { conditions: { 0: { flag: "x", is: "on" } } }],
  ])("explains that a rule never holds with %s", (_, rule) => {
    const flag = flagWithRules(rule as TargetingRule);
    const context = createContext(given({ id: "user" }));
    const outcome = { value: false, reason: "default" };
    expect(compile(flag, references).evaluate(context)).toMatchObject(outcome);
    const conditions = [{ held: false, obstacle: "invalid_condition" }];
    expect(explain(flag, context, references)).toMatchObject({
      ...outcome,
      rules: [{ matched: false, conditions }],
    });
  });
});

describe("given far more rules than the maximum of a flag", () => {
  const many = Array.from({ length: 50_000 }, (_, index) => ({
    conditions: [condition("id", "equals", `user-${index}`)],
    value: index % 2 === 0,
  }));

  it("finds the rule that decides, or none", () => {
    const { evaluate } = compile(flagWithRules(...many));
    const reasonFor = (id: string) => evaluate(createContext(given({ id })));
    expect(reasonFor("user-49998")).toMatchObject({ value: true, reason: "targeting_match" });
    expect(reasonFor("user-49999")).toMatchObject({ value: false, reason: "targeting_match" });
    expect(reasonFor("nobody")).toMatchObject({ value: false, reason: "default" });
  });

  it("stops at a rule without conditions", () => {
    const flag = flagWithRules(...many.slice(0, 20), { conditions: [] }, ...many);
    expect(compile(flag).evaluate(emptyContext)).toMatchObject({ reason: "targeting_match" });
  });
});

describe("given invalid conditions", () => {
  it.each([
    condition("country", "is" as "equals", "DE"),
    condition("country", "toString" as "equals", "DE"),
    condition("country", "equals", ["DE"]),
    condition("country", "not_equals", ["US"]),
    condition("country", "in", 5),
    condition("country", "not_in", true),
    condition("country", "gt", "tomorrow"),
    condition("country", "lt", true),
    condition("country", "semver_gt", 1.2),
    condition("country", "semver_lt", "1.2.3.4"),
    condition("country", "matches_regex", "(?=D)"),
    condition("country", "matches_regex", `D${"?".repeat(500)}`),
    condition("country", "equals", Number.NaN),
  ])("never holds: $operator $value", (invalid) => {
    const context = createContext(given({ country: "DE" }));
    const { value, reason, rules } = explain(oneRuleFlag(invalid), context);
    expect({ value, reason }).toEqual({ value: false, reason: "default" });
    expect(rules[0]?.conditions[0]).toMatchObject({ held: false, obstacle: "invalid_condition" });
    expect(compile(oneRuleFlag(invalid)).constant).toMatchObject({ reason: "default" });
  });
});

describe("given names of members that every object has", () => {
  it.each(["__proto__", "constructor", "toString", "hasOwnProperty", "length", ""])(
    "finds %j only if the context has this attribute",
    (name) => {
      const { evaluate } = compile(oneRuleFlag(condition(name, "not_equals", "x")));
      expect(evaluate(createContext(given({ id: "user" }))).value).toBe(false);
      const attributes: Attributes = new Map([[name, "y"]]);
      expect(evaluate(createContext(attributes)).value).toBe(true);
    },
  );
});
