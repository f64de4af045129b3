import { describe, expect, it } from "@jest/globals";
import type { DecidedChange } from "../../src/change-requests/change-request.ts";
import { describeChanges } from "../../src/change-requests/describe-changes.ts";

/** Tests the words of a summary, which are those of the dashboard. */
describe("the summary of a changed state", () => {
  const before = { enabled: false, rollout_percentage: 100, targeting_rules: [] };
  const described = (after: object) => {
    const change = {
      ...{ kind: "state", flag_id: "f", flag_key: "color", base_version: 1, patch: {} },
      ...{ environment_id: "e", environment_name: "production", dependents: 0 },
      ...{ before, after: { ...before, ...after } },
    };
    return describeChanges([change as unknown as DecidedChange]);
  };
  const rule = { id: "r", conditions: [] };

  it.each<[object, string]>([
    [{ enabled: true, rollout_percentage: 5 }, "turned on, 100 % → 5 %"],
    [{ targeting_rules: [{ ...rule, name: "Beta" }] }, "rule “Beta” added"],
    [{ targeting_rules: [rule] }, "rule 1 added"],
    [{ bucket_by: "company" }, "percentages by id → company"],
    [{ bucket_seed: "s" }, "seed of percentages the flag's key → s"],
    [{ serve: { variation: "red" } }, "served the first variation → red"],
    [{ off_variation: "blue" }, "all others get the application's default → blue"],
    [{ requires: [{ flag: "cart", is: "on" }] }, "requires cart"],
  ])("%j: %s", (after, words) => {
    expect(described(after)).toBe(`color in production: ${words}`);
  });
});
