import { describe, expect, it } from "@jest/globals";
import type { State } from "../src/state/flag-state.ts";
import { type Audiences, neededFor, needsOf, readersWarning } from "../src/state/readers.ts";

const state = (changed: Partial<State> = {}): State => ({
  enabled: true,
  rollout_percentage: 50,
  targeting_rules: [],
  ...changed,
});
const exact = { attribute: "a", operator: "equals" as const, value: "b", match_case: true };

describe("what a state needs of SDKs", () => {
  it.each<[string[], State]>([
    [[], state()],
    [["buckets"], state({ bucket_by: "company" })],
    [["buckets"], state({ bucket_seed: "spring" })],
    [["buckets"], state({ targeting_rules: [{ conditions: [], rollout_percentage: 0.5 }] })],
    [
      ["buckets", "match-case", "values"],
      state({
        rollout_percentage: 12.25,
        serve: { variation: "blue" },
        targeting_rules: [{ conditions: [exact] }],
      }),
    ],
  ])("is %j", (needs, given) => {
    expect(needsOf(given)).toEqual(needs);
  });
});

describe("what references need of SDKs", () => {
  const beta = state({ targeting_rules: [{ conditions: [{ audience: "beta" }] }] });
  const flag = { flag: "payments", is: "on" as const };

  it.each<[string[], State]>([
    [["requires"], state({ requires: [flag] })],
    [["requires"], state({ targeting_rules: [{ conditions: [flag] }] })],
    [["audiences"], beta],
  ])("is %j", (needs, given) => {
    expect(needsOf(given)).toEqual(needs);
  });

  it("includes the needs of the audiences", () => {
    const audiences: Audiences = new Map([
      ["beta", { match: [[exact]], list: { attribute: "id", count: 1 } }],
    ]);
    expect(needsOf(beta, audiences)).toEqual(["audiences", "lists", "match-case"]);
  });
});

describe("the warning about SDKs", () => {
  const warningOf = (before: State, after: State, readers: (typeof current)[] | undefined) =>
    readersWarning(neededFor(before, after), readers);
  const old = { name: "@halyard/server-sdk", version: "0.1.0", knows: [] };
  const current = { name: "@halyard/server-sdk", version: "0.2.0", knows: ["buckets", "values"] };
  const byCompany = state({ bucket_by: "company" });

  it("names the SDKs that do not support the change", () => {
    expect(warningOf(state(), byCompany, [old, current])).toContain(
      "Applications with @halyard/server-sdk 0.1.0 read flags",
    );
  });

  it.each<[string, State, State, (typeof current)[] | undefined]>([
    ["all SDKs support it", state(), byCompany, [current]],
    ["the flag needed it before", byCompany, { ...byCompany, rollout_percentage: 60 }, [old]],
    ["a flag that needs it is turned off", byCompany, { ...byCompany, enabled: false }, [old]],
    ["a flag that needs nothing is turned on", state({ enabled: false }), state(), [old]],
    ["the change needs nothing, and the SDKs could not be read", state(), state(), undefined],
  ])("is absent if %s", (_, before, after, readers) => {
    expect(warningOf(before, after, readers)).toBeUndefined();
  });

  it("appears for a flag that is off, because such an SDK does not find it either", () => {
    const off = state({ enabled: false });
    expect(warningOf(off, { ...byCompany, enabled: false }, [old])).toBeDefined();
  });

  it("appears when a flag is turned on that needed it before", () => {
    expect(warningOf({ ...byCompany, enabled: false }, byCompany, [old])).toBeDefined();
  });

  it("says that the SDKs could not be read", () => {
    expect(warningOf(state(), byCompany, undefined)).toContain("could not read which SDKs");
  });
});
