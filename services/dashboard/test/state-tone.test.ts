import { describe, expect, it } from "@jest/globals";
import { toneOf } from "../src/flags/flag-search.ts";

describe("the color of a state", () => {
  it.each([
    { enabled: true, rollout_percentage: 100, rule_count: 0, tone: "on" },
    { enabled: true, rollout_percentage: 1, rule_count: 0, tone: "on" },
    { enabled: true, rollout_percentage: 0, rule_count: 2, tone: "on" },
    { enabled: true, rollout_percentage: 0, rule_count: 0, tone: "neutral" },
    { enabled: false, rollout_percentage: 100, rule_count: 2, tone: "neutral" },
  ])("of $rollout_percentage % with $rule_count rules, enabled: $enabled, is $tone", (state) => {
    expect(toneOf(state)).toBe(state.tone);
  });
});
