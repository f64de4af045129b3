import { describe, expect, it } from "@jest/globals";
import type { Serve, State } from "../src/state/flag-state.ts";
import { movedPercentage, movedText, serveText } from "../src/state/serve.ts";
import { requestFor, stateDifferences, stateTexts } from "../src/state/state.ts";
import { summarize } from "../src/state/summary.ts";

const split = (weights: Record<string, number>): Serve => ({
  split: Object.entries(weights).map(([variation, weight]) => ({ variation, weight })),
});
const half = split({ blue: 50, red: 50 });
const state = (changed: Partial<State> = {}): State => ({
  enabled: true,
  rollout_percentage: 100,
  targeting_rules: [],
  serve: half,
  off_variation: "grey",
  ...changed,
});
const ofGermany = {
  conditions: [{ attribute: "country", operator: "equals" as const, value: "DE" }],
};

describe("what a typed flag serves, in words", () => {
  it.each<[string, State]>([
    ["Off: everybody gets grey.", state({ enabled: false })],
    ["blue for all users.", state({ serve: { variation: "blue" } })],
    ["blue for 50 %, red for 50 % of all users.", state()],
    [
      "blue for 50 %, red for 50 % of all users, by company (grey for users without company).",
      state({ bucket_by: "company" }),
    ],
    [
      "blue for all users (the application's default for users without company).",
      state({ serve: split({ blue: 100 }), bucket_by: "company", off_variation: null }),
    ],
    [
      "red for users whose country is DE; blue for 50 %, red for 50 % of everybody else, by company (grey for users without company).",
      state({
        bucket_by: "company",
        targeting_rules: [{ ...ofGermany, serve: { variation: "red" } }, { conditions: [] }],
      }),
    ],
    [
      "blue for 25 %, red for 25 % of users whose country is DE, by company (grey for the others); red for everybody else.",
      state({
        bucket_by: "company",
        targeting_rules: [
          { ...ofGermany, rollout_percentage: 50 },
          { conditions: [], serve: { variation: "red" } },
        ],
      }),
    ],
    [
      "blue for 6.13 %, red for 6.13 % of all users (the application's default for the others).",
      state({ rollout_percentage: 12.25, off_variation: null }),
    ],
    ["grey for all users.", state({ rollout_percentage: 0 })],
    [
      "blue for 50 %, red for 50 % of users whose country is DE; everybody else gets grey.",
      state({ targeting_rules: [ofGermany] }),
    ],
    [
      "grey for users whose country is DE; red for everybody else.",
      state({
        targeting_rules: [
          { ...ofGermany, value: false },
          { conditions: [], serve: { variation: "red" } },
        ],
      }),
    ],
  ])("says %s", (text, given) => {
    expect(summarize(given)).toBe(text);
  });

  it("counts the variations that a short text does not name", () => {
    expect(serveText(split({ a: 20, b: 20, c: 20, d: 20, e: 10, f: 10, g: 0 }))).toBe(
      "a 20 %, b 20 %, c 20 %, d 20 %, 2 more",
    );
  });

  it("lists the whole state", () => {
    expect(stateTexts(state())).toContain("Served: blue 50 %, red 50 %");
    expect(stateTexts(state())).toContain("All others get grey");
  });
});

describe("the difference of two served values", () => {
  it.each<[number, Serve, Serve]>([
    [0, half, half],
    [10, half, split({ blue: 60, red: 40 })],
    [6, split({ a: 34, b: 33, c: 33 }), split({ a: 40, b: 30, c: 30 })],
    [50, { variation: "blue" }, half],
    [100, { variation: "blue" }, { variation: "red" }],
    [0.07, half, split({ blue: 50.07, red: 49.93 })],
  ])("moves %d %% of the users", (moved, before, after) => {
    expect(movedPercentage(before, after)).toBe(moved);
  });

  it("says how many users move, and nothing if none do", () => {
    const other = split({ blue: 60, red: 40 });
    expect(movedText(half, other)).toMatch(/^10 % of these users/);
    expect(movedText(half, half)).toBeUndefined();
    expect(movedText(half, { variation: "red" })).toMatch(/^50 % of these users/);
  });

  it("is named for the flag, for a rule and for all others", () => {
    const before = state({ targeting_rules: [{ ...ofGermany, id: "r" }] });
    const after = state({
      serve: { variation: "red" },
      off_variation: null,
      targeting_rules: [{ ...ofGermany, id: "r", serve: { variation: "blue" } }],
    });
    expect(stateDifferences(before, after)).toEqual([
      { label: "Rule 1", parts: [{ label: "Served", before: "as the flag", after: "blue" }] },
      { label: "Served", before: "blue 50 %, red 50 %", after: "red" },
      { label: "All others get", before: "grey", after: "the application's default" },
    ]);
  });

  it("is that other users get the variations, if only the buckets differ", () => {
    const withRanges = (blue: number[][], red: number[][]): Serve => ({
      split: [
        { variation: "blue", weight: 50, ranges: blue },
        { variation: "red", weight: 50, ranges: red },
      ],
    });
    const low = [[0, 5_000]];
    const high = [[5_000, 10_000]];
    const one = state({ serve: withRanges(low, high) });
    expect(stateDifferences(one, state({ serve: withRanges(high, low) }))).toEqual([
      {
        label: "Served",
        before: "blue 50 %, red 50 %",
        after: "blue 50 %, red 50 %, to other users",
      },
    ]);
    expect(stateDifferences(one, state())).toEqual([]);
  });

  it("is requested with the default of the application as null, and not for boolean flags", () => {
    expect(requestFor(state({ off_variation: null }))).toMatchObject({ off_variation: null });
    const { serve: _, off_variation: __, ...boolean } = state();
    expect(Object.keys(requestFor(boolean))).toEqual([
      "enabled",
      "rollout_percentage",
      "targeting_rules",
      "requires",
      "bucket_by",
      "bucket_seed",
    ]);
  });
});
