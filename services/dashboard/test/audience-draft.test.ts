import { describe, expect, it } from "@jest/globals";
import { ApiProblem } from "../src/api/problem.ts";
import type { Audience } from "../src/api/schema.d.ts";
import {
  audienceDifferences,
  audienceProblems,
  changedSettings,
  decided,
  matchOf,
  matchProblemOf,
  newAlternative,
  reachText,
  rebased,
  startEdit,
} from "../src/audiences/audience-draft.ts";
import { differenceText } from "../src/state/difference.ts";
import { fieldKey } from "../src/targeting/problems.ts";

const plan = { attribute: "plan", operator: "equals" as const, value: "beta" };
const country = { attribute: "country", operator: "equals" as const, value: "DE" };
const stored: Audience = {
  key: "beta",
  name: "Beta",
  description: "",
  match: [[plan]],
  list: null,
  version: 3,
  created_at: "2026-11-01T00:00:00Z",
  updated_at: "2026-11-01T00:00:00Z",
  used_by: [],
};
const rules = { operators: undefined, locale: "en" };

describe("the draft of an audience", () => {
  it("keeps the alternatives as the API takes them", () => {
    expect(matchOf(startEdit(stored).draft)).toEqual([[plan]]);
  });

  it("sends only the settings that changed", () => {
    const { base, draft } = startEdit(stored);
    expect(changedSettings(base, { ...draft, name: " Mine " })).toEqual({ name: "Mine" });
    expect(changedSettings(base, { ...draft, alternatives: [] })).toEqual({ match: [] });
  });

  it("has problems by field", () => {
    const { draft } = startEdit(stored);
    const added = newAlternative();
    const empty = { uid: "empty", conditions: [] };
    const alternatives = [...draft.alternatives, added, empty];
    const problems = audienceProblems({ ...draft, name: " ", alternatives }, rules);
    const condition = added.conditions[0]?.uid;
    expect([...problems.keys()]).toEqual([
      fieldKey("", "name"),
      fieldKey(added.uid, "attribute", condition),
      fieldKey(added.uid, "value", condition),
      fieldKey("empty", "conditions"),
    ]);
  });

  it("shows a message of the API at its condition", () => {
    const facts = { status: 400, code: "VALIDATION_001", requestId: null, retryAfter: null };
    const error = new ApiProblem("/match/0/0/value must be a number", facts);
    expect([...matchProblemOf(error, startEdit(stored).draft)]).toEqual([
      [fieldKey("alternative-0", "value", "condition-0"), "Must be a number"],
    ]);
  });
});

describe("given an edit of the name, and another person's change", () => {
  const edit = startEdit(stored);
  const mine = { ...edit, draft: { ...edit.draft, name: "Mine" } };

  it("takes the parts that only the other person changed", () => {
    const merged = rebased(mine, { ...stored, match: [[country]], version: 4 });
    expect(matchOf(merged.draft)).toEqual([[country]]);
    expect(merged).toMatchObject({ draft: { name: "Mine" }, version: 4, conflicts: [] });
  });

  it("is a conflict for a part that both changed", () => {
    const merged = rebased(mine, { ...stored, name: "Theirs", version: 4 });
    expect(merged.conflicts).toEqual(["name"]);
    expect(decided(merged, "name", "theirs")).toMatchObject({
      draft: { name: "Theirs" },
      conflicts: [],
    });
  });

  it("is no conflict if both made the same change", () => {
    expect(rebased(mine, { ...stored, name: "Mine", version: 4 }).conflicts).toEqual([]);
  });
});

describe("the history of an audience", () => {
  it("describes what differs", () => {
    const after = {
      ...stored,
      match: [[plan], [country]],
      list: { attribute: "id", count: 1_200 },
    };
    expect(audienceDifferences(stored, after).map(differenceText)).toEqual([
      "Alternatives: Alternative 1: plan is beta → Alternative 1: plan is beta. Alternative 2: country is DE",
      "List: none → 1,200 entries, compared with id",
    ]);
  });
});

describe("the reach of a change", () => {
  it("counts flags and environments once", () => {
    const use = (flag_id: string, environment_id: string) => ({ flag_id, environment_id });
    expect(reachText([use("a", "1"), use("a", "2"), use("b", "1")])).toBe(
      "2 flags in 2 environments",
    );
  });
});
