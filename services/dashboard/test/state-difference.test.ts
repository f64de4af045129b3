import { describe, expect, it } from "@jest/globals";
import type { AttributeCondition } from "../src/api/schema.d.ts";
import { differenceText } from "../src/state/difference.ts";
import type { State, TargetingRule } from "../src/state/flag-state.ts";
import { stateDifferences, stateTexts } from "../src/state/state.ts";

const base: State = { enabled: true, rollout_percentage: 100, targeting_rules: [] };
const differences = (before: Partial<State>, after: Partial<State>) =>
  stateDifferences({ ...base, ...before }, { ...base, ...after }).map(differenceText);
const withRules = (before: TargetingRule[], after: TargetingRule[]) =>
  differences({ targeting_rules: before }, { targeting_rules: after });

const staff: TargetingRule = {
  id: "r1",
  name: "staff",
  conditions: [{ attribute: "email", operator: "ends_with", value: "@example.com" }],
};
const germany: TargetingRule = {
  id: "r2",
  conditions: [{ attribute: "country", operator: "in", value: ["DE", "AT"] }],
  rollout_percentage: 20,
};

describe("the difference between two states", () => {
  it("names the state and the percentage", () => {
    expect(
      differences({ enabled: false, rollout_percentage: 10 }, { rollout_percentage: 50 }),
    ).toEqual(["State: off → on", "Percentage: 10 % → 50 %"]);
  });

  it("describes rules that were added and removed", () => {
    expect(withRules([staff], [germany])).toEqual([
      "Rule 1 added: users whose country is one of DE or AT: on for 20 %",
      "Rule “staff” removed: users whose email ends with @example.com: on, for the percentage of the flag",
    ]);
  });

  it("describes the parts of a rule that changed", () => {
    const changed: TargetingRule = {
      ...germany,
      name: "Germany",
      conditions: [{ attribute: "country", operator: "equals", value: "DE" }],
      rollout_percentage: 80,
    };
    expect(withRules([germany], [changed])).toEqual([
      "Rule “Germany” changed (Name: none → Germany; Condition added: country is DE; " +
        "Condition removed: country is one of DE or AT; Result: on for 20 % → on for 80 %)",
    ]);
  });

  it("names the items of a list that were added and removed, also in a long one", () => {
    const items = Array.from({ length: 100 }, (_, index) => `c${index}`);
    const limited = (value: AttributeCondition["value"]): TargetingRule => ({
      name: "customers",
      conditions: [{ attribute: "customer", operator: "in", value }],
    });
    expect(withRules([limited(items)], [limited([...items.slice(0, 99), "new one"])])).toEqual([
      "Rule “customers” changed (customer is one of added: “new one”; customer is one of removed: c99)",
    ]);
  });

  it("shows both values of a condition that compares with another value", () => {
    const limited = (value: string): TargetingRule => ({
      name: "new apps",
      conditions: [{ attribute: "app_version", operator: "semver_gte", value }],
    });
    expect(withRules([limited("2.0.0")], [limited("2.3.0")])).toEqual([
      "Rule “new apps” changed (Condition: app_version is at least version 2.0.0 → app_version is at least version 2.3.0)",
    ]);
  });

  it("names the order only if the kept rules changed places", () => {
    expect(withRules([staff, germany], [germany, staff])).toEqual([
      "Order of the rules: rule “staff”, rule 1 → rule 1, rule “staff”",
    ]);
    const everyone: TargetingRule = { id: "r3", conditions: [], value: false };
    expect(withRules([staff, germany], [everyone, staff, germany])).toEqual([
      "Rule 1 added: all users: off",
    ]);
  });

  it.each([
    ["the same content elsewhere", { ...staff }, { ...staff }, []],
    [
      "the name",
      staff,
      { ...staff, value: false },
      ["Rule “staff” changed (Result: on, for the percentage of the flag → off)"],
    ],
    [
      "the position",
      germany,
      { ...germany, rollout_percentage: 30 },
      ["Rule 1 changed (Result: on for 20 % → on for 30 %)"],
    ],
  ])("recognizes a rule without an id by %s", (_, before, after, expected) => {
    const { id: _before, ...former } = before;
    const { id: _after, ...next } = after;
    expect(withRules([former], [next])).toEqual(expected);
  });

  it("keeps two rules apart that have the same position and other ids", () => {
    expect(withRules([germany], [{ ...germany, id: "r9", rollout_percentage: 30 }])).toEqual([
      "Rule 1 added: users whose country is one of DE or AT: on for 30 %",
      "Rule 1 removed: users whose country is one of DE or AT: on for 20 %",
    ]);
  });

  it("is empty if users get the same", () => {
    expect(withRules([staff], [{ ...staff, id: "another", value: true }])).toEqual([]);
  });
});

describe("a whole state in words", () => {
  it("lists the rules in their order, and what all others get", () => {
    expect(stateTexts({ ...base, targeting_rules: [staff, germany] })).toEqual([
      "On",
      "Percentage of the flag: 100 %",
      "Rule “staff”: users whose email ends with @example.com: on, for the percentage of the flag",
      "Rule 2: users whose country is one of DE or AT: on for 20 %",
      "All other users: off",
    ]);
  });

  it("counts the items of a long list", () => {
    const value = Array.from({ length: 1_000 }, (_, index) => `c${index}`);
    const rule: TargetingRule = { conditions: [{ attribute: "customer", operator: "in", value }] };
    expect(stateTexts({ ...base, targeting_rules: [rule] })[2]).toContain("c4 or 995 more");
  });

  it("omits the last sentence if a rule matches everybody", () => {
    const texts = stateTexts({ ...base, targeting_rules: [staff, { conditions: [] }] });
    expect(texts.at(-1)).toBe("Rule 2: all users: on, for the percentage of the flag");
  });
});
