import { describe, expect, it } from "@jest/globals";
import type { Serve, State, TargetingRule } from "../src/state/flag-state.ts";
import {
  copyOf,
  type Draft,
  type DraftServe,
  draftOf,
  isInvalid,
  newRule,
  ruleOf,
  stateOf,
} from "../src/targeting/draft.ts";
import { mergeDrafts, withTheirs } from "../src/targeting/merge-drafts.ts";

/** A rule for one value of `plan`. The id is the first letter of the value. */
const rule = (plan: string, id = plan.charAt(0)): TargetingRule => ({
  id,
  conditions: [{ attribute: "plan", operator: "equals", value: plan }],
});
const [a, b, c] = [rule("a"), rule("b"), rule("c")];
const state = (rules: readonly TargetingRule[], others: Partial<State> = {}): State => ({
  enabled: false,
  rollout_percentage: 50,
  ...others,
  targeting_rules: [...rules],
});

/** Merges an edit of the draft. The rules of the result are shown by the values of their conditions. */
function merge(base: State, edit: (draft: Draft) => Draft, saved: State) {
  const started = draftOf(base);
  const merged = mergeDrafts({ base: started, mine: edit(started), saved });
  return { ...merged, state: stateOf(merged.draft), rules: plansOf(merged.draft) };
}
const plansOf = (draft: Draft): string =>
  draft.rules
    .map(({ conditions: [condition] }) =>
      condition !== undefined && "value" in condition ? condition.value : undefined,
    )
    .join(" ");

/** Edits the list of rules. A rule of the list keeps its identity, and another one is new. */
const rulesAs =
  (rules: readonly TargetingRule[]) =>
  (draft: Draft): Draft => ({
    ...draft,
    rules: rules.map((wanted) => {
      const { conditions } = draftOf(state([wanted])).rules[0] ?? newRule();
      const known = draft.rules.find(({ id }) => id !== undefined && id === wanted.id);
      return { ...(known ?? { ...wanted, uid: newRule().uid }), conditions };
    }),
  });

describe("members that one person changed", () => {
  it("have that person's value, whoever it is", () => {
    const merged = merge(
      state([]),
      (draft) => ({ ...draft, enabled: true }),
      state([], { rollout_percentage: 20 }),
    );
    expect(merged.state).toStrictEqual(state([], { enabled: true, rollout_percentage: 20 }));
    expect(merged.conflicts).toStrictEqual([]);
  });

  it("are no conflict if both people changed them to the same value", () => {
    const merged = merge(
      state([]),
      (draft) => ({ ...draft, enabled: true }),
      state([], { enabled: true }),
    );
    expect(merged.conflicts).toStrictEqual([]);
    expect(merged.state.enabled).toBe(true);
  });
});

describe("members that both people changed", () => {
  it("are a conflict, and keep my value until I choose", () => {
    const merged = merge(
      state([]),
      (draft) => ({ ...draft, rollout_percentage: 60 }),
      state([], { rollout_percentage: 40, enabled: true }),
    );
    expect(merged.conflicts).toStrictEqual(["rollout_percentage"]);
    expect(merged.state).toStrictEqual(state([], { rollout_percentage: 60, enabled: true }));
    const chosen = withTheirs(merged.draft, merged.base, "rollout_percentage");
    expect(stateOf(chosen).rollout_percentage).toBe(40);
  });

  it("keep a text that is no percentage, and replace it by a chosen percentage", () => {
    const merged = merge(
      state([]),
      (draft) => ({ ...draft, invalidPercentage: "4o" }),
      state([], { rollout_percentage: 40 }),
    );
    expect(merged.conflicts).toStrictEqual(["rollout_percentage"]);
    expect(merged.draft.invalidPercentage).toBe("4o");
    const chosen = withTheirs(merged.draft, merged.base, "rollout_percentage");
    expect(chosen).toMatchObject({ rollout_percentage: 40, invalidPercentage: undefined });
  });
});

type Row = {
  name: string;
  base: readonly TargetingRule[];
  mine: readonly TargetingRule[];
  theirs: readonly TargetingRule[];
  merged: string;
  conflicts?: readonly string[];
  /** The rules after every conflict is decided for the other person. */
  taken?: string;
};

const rows: readonly Row[] = [
  {
    ...{ name: "edits of different rules", base: [a, b], mine: [rule("a2"), b] },
    ...{ theirs: [a, rule("b2")], merged: "a2 b2" },
  },
  {
    ...{ name: "the same edit of a rule", base: [a], mine: [rule("a2")], theirs: [rule("a2")] },
    ...{ merged: "a2" },
  },
  {
    ...{ name: "different edits of a rule", base: [a, b], mine: [rule("a2"), b] },
    ...{ theirs: [rule("a3"), b], merged: "a2 b", conflicts: ["rule rule-0"], taken: "a3 b" },
  },
  {
    ...{ name: "additions at the same place", base: [a], mine: [a, b], theirs: [a, c] },
    merged: "a c b",
  },
  {
    ...{ name: "additions at different places", base: [a, b], mine: [rule("x"), a, b] },
    ...{ theirs: [a, c, b], merged: "x a c b" },
  },
  {
    ...{ name: "the same addition without an id", base: [], merged: "a" },
    ...{ mine: [{ conditions: a.conditions }], theirs: [{ conditions: a.conditions }] },
  },
  {
    ...{ name: "my deletion, and an edit of another rule", base: [a, b], mine: [b] },
    ...{ theirs: [a, rule("b2")], merged: "b2" },
  },
  {
    ...{ name: "their deletion, and an edit of another rule", base: [a, b], theirs: [b] },
    ...{ mine: [a, rule("b2")], merged: "b2" },
  },
  { name: "the same deletion", base: [a, b], mine: [b], theirs: [b], merged: "b" },
  {
    ...{ name: "my deletion of a rule that they changed", base: [a, b, c], mine: [a, c] },
    ...{ theirs: [a, rule("b2"), c], merged: "a c", conflicts: ["rule rule-1"], taken: "a b2 c" },
  },
  {
    ...{ name: "their deletion of a rule that I changed", base: [a, b], mine: [a, rule("b2")] },
    ...{ theirs: [a], merged: "a b2", conflicts: ["rule rule-1"], taken: "a" },
  },
  {
    ...{ name: "my order, and their edit", base: [a, b, c], mine: [c, a, b] },
    ...{ theirs: [a, rule("b2"), c], merged: "c a b2" },
  },
  {
    ...{ name: "their order, and my edit", base: [a, b, c], mine: [a, rule("b2"), c] },
    ...{ theirs: [c, a, b], merged: "c a b2" },
  },
  {
    ...{ name: "their order, and my addition and deletion", base: [a, b, c] },
    ...{ mine: [a, rule("x"), c], theirs: [c, b, a], merged: "c a x" },
  },
  {
    ...{ name: "the same order", base: [a, b], mine: [b, a], theirs: [b, a], merged: "b a" },
  },
  {
    ...{ name: "different orders", base: [a, b, c], mine: [b, a, c], theirs: [c, a, b] },
    ...{ merged: "b a c", conflicts: ["order"], taken: "c a b" },
  },
];

describe("rules", () => {
  it.each(rows)("merge $name", ({ base, mine, theirs, merged, conflicts = [], taken = merged }) => {
    const result = merge(state(base), rulesAs(mine), state(theirs));
    expect(result.rules).toBe(merged);
    expect(result.conflicts).toStrictEqual(conflicts);
    const decided = result.conflicts.reduce(
      (draft, part) => withTheirs(draft, result.base, part),
      result.draft,
    );
    expect(plansOf(decided)).toBe(taken);
    expect(stateOf(result.base)).toStrictEqual(state(theirs));
  });

  it("without ids are recognized by their content and name", () => {
    const { id: _, ...first } = a;
    const staff: TargetingRule = { name: "staff", conditions: b.conditions };
    const merged = merge(
      state([first, staff]),
      (draft) => ({ ...draft, rules: draft.rules.map((each) => ({ ...each, value: false })) }),
      state([first, { ...staff, rollout_percentage: 10 }]),
    );
    expect(merged.conflicts).toStrictEqual(["rule rule-1"]);
    expect(merged.state.targeting_rules[0]).toStrictEqual({ ...first, value: false });
  });

  it("with an id that two rules share are all kept", () => {
    const twice = [rule("x1"), rule("x2")];
    const merged = merge(state(twice), (draft) => draft, state([...twice, rule("x3")]));
    expect(merged.rules).toBe("x1 x2 x3");
  });

  it("keep their identities, so that an open rule stays open and the focus stays in it", () => {
    const base = draftOf(state([a, b]));
    const mine = { ...base, rules: [...base.rules, copyOf(base.rules[0] ?? newRule())] };
    const { draft } = mergeDrafts({ base, mine, saved: state([c, a, b]) });
    expect(draft.rules.slice(1)).toStrictEqual(mine.rules);
  });
});

it("merges a second version into a draft with a conflict, and keeps the draft's value", () => {
  const first = merge(
    state([a]),
    (draft) => ({ ...draft, rollout_percentage: 60 }),
    state([a], { rollout_percentage: 40 }),
  );
  const saved = state([a, b], { rollout_percentage: 40 });
  const second = mergeDrafts({ base: first.base, mine: first.draft, saved });
  expect(stateOf(second.draft)).toStrictEqual(state([a, b], { rollout_percentage: 60 }));
});

describe("what a typed flag serves", () => {
  const served = (blue: number): Serve => ({
    split: [
      { variation: "blue", weight: blue, ranges: [[0, blue * 100]] },
      { variation: "red", weight: 100 - blue, ranges: [[blue * 100, 10_000]] },
    ],
  });
  const typed = (changed: Partial<State> = {}): State =>
    state([], { serve: served(50), off_variation: "red", ...changed });

  it("is sent without buckets, so that the API moves the fewest users", () => {
    expect(stateOf(draftOf(typed())).serve).toEqual({
      split: [
        { variation: "blue", weight: 50 },
        { variation: "red", weight: 50 },
      ],
    });
  });

  it("is no edit if another person changed only the buckets", () => {
    const swapped: Serve = {
      split: [
        { variation: "blue", weight: 50, ranges: [[5_000, 10_000]] },
        { variation: "red", weight: 50, ranges: [[0, 5_000]] },
      ],
    };
    const merged = merge(
      typed(),
      (draft) => ({ ...draft, serve: { variation: "red" } }),
      typed({ serve: swapped }),
    );
    expect(merged.conflicts).toStrictEqual([]);
    expect(merged.state.serve).toEqual({ variation: "red" });
  });

  it("is a conflict if both people changed it, beside the other members", () => {
    const merged = merge(
      typed(),
      (draft) => ({ ...draft, serve: { variation: "red" } }),
      typed({ serve: served(60), off_variation: null, bucket_by: "company", bucket_seed: "s" }),
    );
    expect(merged.conflicts).toStrictEqual(["serve"]);
    expect(merged.state).toMatchObject({
      serve: { variation: "red" },
      off_variation: null,
      bucket_by: "company",
      bucket_seed: "s",
    });
    const chosen = withTheirs(merged.draft, merged.base, "serve");
    expect(stateOf(chosen).serve).toEqual(stateOf(draftOf(typed({ serve: served(60) }))).serve);
  });

  it("keeps a text that is no percentage until a choice replaces it", () => {
    const invalid: DraftServe = {
      split: [
        { variation: "blue", weight: 50, invalidWeight: "5o" },
        { variation: "red", weight: 50 },
      ],
    };
    const merged = merge(
      typed(),
      (draft) => ({ ...draft, serve: invalid }),
      typed({ serve: served(60) }),
    );
    expect(merged.conflicts).toStrictEqual(["serve"]);
    expect(isInvalid(merged.draft)).toBe(true);
    expect(isInvalid(withTheirs(merged.draft, merged.base, "serve"))).toBe(false);
  });

  it("of a rule is merged with the rule, and is not sent for users who are taken out", () => {
    const own = { ...a, serve: served(50) };
    const merged = merge(
      { ...typed(), targeting_rules: [own] },
      (draft) => ({ ...draft, enabled: true }),
      { ...typed(), targeting_rules: [{ ...own, serve: { variation: "red" } }] },
    );
    expect(merged.state.targeting_rules).toMatchObject([{ serve: { variation: "red" } }]);
    const [rule] = draftOf({ ...typed(), targeting_rules: [own] }).rules;
    expect(rule && ruleOf({ ...rule, value: false })).toEqual({ ...a, value: false });
  });
});
