import { describe, expect, it } from "@jest/globals";
import { patiently } from "../src/api/patiently.ts";
import { ApiProblem } from "../src/api/problem.ts";
import {
  type Comparison,
  compareFlag,
  filterComparisons,
  missingRules,
} from "../src/compare/compare-flags.ts";
import { choosePair } from "../src/compare/compare-search.ts";
import { planCopy, summaryOfCopy } from "../src/compare/plan-copy.ts";
import type { ListedFlag, ListedState } from "../src/flags/flag-search.ts";
import type { FlagState, TargetingRule } from "../src/state/flag-state.ts";

const staff: TargetingRule = {
  name: "Staff",
  conditions: [{ attribute: "email", operator: "ends_with", value: "@example.com" }],
};
const germany: TargetingRule = {
  conditions: [{ attribute: "country", operator: "in", value: ["DE", "AT"] }],
  rollout_percentage: 20,
};
const state = (changed: Partial<FlagState> = {}): FlagState => ({
  flag_id: "flag",
  environment_id: "production",
  enabled: true,
  rollout_percentage: 100,
  targeting_rules: [],
  version: 1,
  updated_at: "2025-11-20T12:00:00.000Z",
  ...changed,
});
const listed = (key: string, from: Partial<ListedState>, to: Partial<ListedState>): ListedFlag => {
  const usual = { enabled: true, rollout_percentage: 100, rule_count: 0, version: 1 };
  return {
    id: key,
    key,
    name: key,
    description: "",
    type: "release",
    value_type: "boolean",
    tags: [],
    owner: null,
    archived_at: null,
    enabled: true,
    rollout_percentage: 100,
    targeting_rules: [],
    environment_id: "development",
    version: 1,
    created_at: "",
    updated_at: "",
    last_evaluated_at: null,
    environments: [
      { ...usual, ...from, environment_id: "staging" },
      { ...usual, ...to, environment_id: "production" },
    ],
  };
};

describe("the comparison of two environments", () => {
  const none = () => undefined;
  const compare = (flag: ListedFlag, rulesOf: Parameters<typeof compareFlag>[3] = none) =>
    compareFlag(flag, "staging", "production", rulesOf) as Comparison;

  it("decides from the list, unless both sides have equally many rules", () => {
    expect(compare(listed("same", {}, {}))).toMatchObject({ differing: [], isUnknown: false });
    expect(
      compare(listed("all", { enabled: false, rule_count: 1 }, { rollout_percentage: 5 }))
        .differing,
    ).toEqual(["State", "Percentage", "Rules"]);
    const unknown = compare(listed("rules", { rule_count: 1 }, { rule_count: 1 }));
    expect(unknown).toMatchObject({ differing: [], isUnknown: true });
    expect(missingRules([unknown], none).map(({ state: { environment_id: id } }) => id)).toEqual([
      "staging",
      "production",
    ]);
  });

  it("compares the rules that were read", () => {
    const flag = listed("rules", { rule_count: 1 }, { rule_count: 1 });
    expect(compare(flag, () => [staff])).toMatchObject({ differing: [], isUnknown: false });
    const other = compare(flag, (_, { environment_id: id }) =>
      id === "staging" ? [staff] : [germany],
    );
    expect(other).toMatchObject({ differing: ["Rules"], isUnknown: false });
  });

  it("shows flags that differ or may differ, and with `all` every flag that matches", () => {
    const found = [
      compare(listed("same", {}, {})),
      compare(listed("differs", { enabled: false }, {})),
      compare(listed("unknown", { rule_count: 2 }, { rule_count: 2 })),
    ];
    const keys = (filter: Parameters<typeof filterComparisons>[1]) =>
      filterComparisons(found, filter).map(({ flag }) => flag.key);
    expect(keys({})).toEqual(["differs", "unknown"]);
    expect(keys({ all: true })).toEqual(["same", "differs", "unknown"]);
    expect(keys({ q: "diff" })).toEqual(["differs"]);
  });

  it("is from staging to production, unless the address names others", () => {
    const environments = ["development", "staging", "production"].map((name) => ({ name }));
    const names = (search: Parameters<typeof choosePair>[1]) => {
      const pair = choosePair(environments, search);
      return [pair?.from.name, pair?.to.name];
    };
    expect(names({})).toEqual(["staging", "production"]);
    expect(names({ from: "production" })).toEqual(["production", "staging"]);
    expect(names({ from: "development", to: "staging" })).toEqual(["development", "staging"]);
    expect(names({ from: "gone", to: "staging" })).toEqual(["development", "staging"]);
    expect(choosePair(environments.slice(0, 1), {})).toBeUndefined();
  });
});

describe("a copy", () => {
  const flag = { id: "flag", key: "search" };

  it("sends only what differs, to the version that was compared", () => {
    const source = state({ rollout_percentage: 60, targeting_rules: [staff] });
    const target = state({ version: 7, targeting_rules: [staff] });
    expect(planCopy({ flag, source, target }, "least-moved")).toMatchObject({
      version: 7,
      body: { rollout_percentage: 60 },
    });
    expect(planCopy({ flag, source, target: source }, "least-moved").changes).toEqual([]);
  });

  it("sends the weights of a split, and its buckets only for the same users", () => {
    const low: number[][] = [[0, 5_000]];
    const high: number[][] = [[5_000, 10_000]];
    const split = (blue: number[][], red: number[][]) => ({
      split: [
        { variation: "blue", weight: 50, ranges: blue },
        { variation: "red", weight: 50, ranges: red },
      ],
    });
    const ofRule = { ...staff, id: "r", serve: split(low, high) };
    const source = state({ serve: split(low, high), targeting_rules: [ofRule] });
    const target = state({ serve: { variation: "blue" }, off_variation: "red" });
    const weights = {
      split: [
        { variation: "blue", weight: 50 },
        { variation: "red", weight: 50 },
      ],
    };
    expect(planCopy({ flag, source, target }, "least-moved").body).toEqual({
      serve: weights,
      targeting_rules: [{ ...ofRule, serve: weights }],
    });
    expect(planCopy({ flag, source, target }, "same").body).toMatchObject({
      serve: source.serve,
      targeting_rules: [ofRule],
    });
    const otherUsers = state({ serve: split(high, low), targeting_rules: [ofRule] });
    expect(planCopy({ flag, source, target: otherUsers }, "least-moved").changes).toEqual([]);
    expect(planCopy({ flag, source, target: otherUsers }, "same").changes).toHaveLength(1);
  });

  it("waits for a rate limit, but not for the plan's limit of the size of rules", async () => {
    const limited = (retryAfter: number | null) =>
      new ApiProblem("", { status: 429, code: "RATE_001", requestId: null, retryAfter });
    const answers = [limited(0), limited(null)];
    const request = () => Promise.reject(answers.shift());
    await expect(patiently(request)).rejects.toMatchObject({ retryAfter: null });
    expect(answers).toEqual([]);
  });

  it("is summarized by its outcomes", () => {
    expect(summaryOfCopy([{ kind: "copied" }, { kind: "conflict" }, { kind: "copied" }])).toBe(
      "2 copied, 1 changed meanwhile",
    );
  });
});
