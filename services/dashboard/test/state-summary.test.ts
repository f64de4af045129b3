import { describe, expect, it } from "@jest/globals";
import type { TargetingRule } from "../src/state/flag-state.ts";
import { ruleHint, summarize } from "../src/state/summary.ts";
import { conditionText } from "../src/state/words.ts";

const staff: TargetingRule = {
  name: "Staff",
  conditions: [{ attribute: "email", operator: "ends_with", value: "@example.com" }],
};
const germans: TargetingRule = {
  conditions: [{ attribute: "country", operator: "equals", value: "DE" }],
};
const everyone: TargetingRule = { conditions: [] };

const on = (targeting_rules: TargetingRule[], rollout_percentage = 100) =>
  summarize({ enabled: true, rollout_percentage, targeting_rules });

describe("the summary of a flag's state", () => {
  it("says that a disabled flag is off for everyone, even with rules", () => {
    const disabled = { enabled: false, rollout_percentage: 100, targeting_rules: [staff] };
    expect(summarize(disabled)).toBe("Off for everyone.");
  });

  it("says who gets a flag without rules", () => {
    expect(on([])).toBe("On for everyone.");
    expect(on([], 20)).toBe("On for 20 % of all users. The others get it off.");
    expect(on([], 0)).toBe("Off for everyone, because the percentage is 0.");
  });

  it("names the users of each rule with the percentage that applies to them", () => {
    expect(on([staff, { ...germans, rollout_percentage: 20 }])).toBe(
      "On for Staff (email ends with @example.com), and for 20 % of users whose country is DE. Everyone else gets it off.",
    );
    expect(on([germans], 30)).toBe(
      "On for 30 % of users whose country is DE. Everyone else gets it off.",
    );
  });

  it("applies later rules only to the others, because the first matching rule decides", () => {
    const someGermans = { ...germans, rollout_percentage: 20 };
    expect(on([someGermans, staff])).toBe(
      "On for 20 % of users whose country is DE (off for the other 80 %). Of the others: on for Staff (email ends with @example.com). Everyone else gets it off.",
    );
    expect(on([someGermans, everyone])).toBe(
      "On for 20 % of users whose country is DE (off for the other 80 %). Everyone else gets it on.",
    );
  });

  it("says that a rule with 0 % turns the flag off for its users", () => {
    expect(on([{ ...germans, rollout_percentage: 0 }, everyone])).toBe(
      "Off for users whose country is DE. Everyone else gets it on.",
    );
  });

  it("keeps the order of rules that take users out, without their percentage", () => {
    expect(on([{ ...germans, value: false, rollout_percentage: 20 }, staff, everyone])).toBe(
      "Off for users whose country is DE. Of the others: on for Staff (email ends with @example.com). Everyone else gets it on.",
    );
  });

  it("ends at the first rule without conditions, because no user reaches a later one", () => {
    const rules = [{ ...everyone, rollout_percentage: 5 }, staff];
    expect(on(rules)).toBe("On for 5 % of all users. The others get it off.");
    expect(ruleHint(rules, 0)).toBeUndefined();
    expect(ruleHint(rules, 1)).toBe("No user reaches this rule, because rule 1 matches everyone.");
    expect(on([staff, { ...everyone, rollout_percentage: 5 }])).toBe(
      "On for Staff (email ends with @example.com). Of everyone else, 5 % get it on and the others off.",
    );
  });

  it.each<[string, TargetingRule[]]>([
    ["On for 20 % of all users, by company. The others get it off.", []],
    ["On for 20 % of users whose country is DE, by company. Everyone else gets it off.", [germans]],
    [
      "On for Staff (email ends with @example.com). Of everyone else, by company, 5 % get it on and the others off.",
      [
        { ...staff, rollout_percentage: 100 },
        { ...everyone, rollout_percentage: 5 },
      ],
    ],
  ])("names the attribute that percentages count: %s", (text, targeting_rules) => {
    const given = { enabled: true, rollout_percentage: 20, targeting_rules };
    expect(summarize({ ...given, bucket_by: "company" })).toBe(text);
  });

  it("quotes an attribute whose borders would be unclear, and names none without percentages", () => {
    const given = { enabled: true, targeting_rules: [], bucket_by: "device id" };
    expect(summarize({ ...given, rollout_percentage: 20 })).toContain("users, by “device id”.");
    expect(summarize({ ...given, rollout_percentage: 100 })).toBe("On for everyone.");
  });

  it("counts the rules and the list items that it does not name", () => {
    expect(on(Array.from({ length: 7 }, () => germans))).toContain("2 more rules follow.");
    const value = ["AT", "BE", "CH", "DE", "FR", "IT", "NL"];
    expect(conditionText({ attribute: "country", operator: "in", value })).toBe(
      "country is one of AT, BE, CH, DE, FR or 2 more",
    );
  });
});
