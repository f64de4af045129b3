import { describe, expect, it } from "@jest/globals";
import { ApiProblem } from "../src/api/problem.ts";
import type { Condition, Dependent, Requirement } from "../src/api/schema.d.ts";
import { affectedBy, dependentsWarning, pathText } from "../src/references/dependents.ts";
import { differenceText } from "../src/state/difference.ts";
import type { State } from "../src/state/flag-state.ts";
import { requestFor, stateDifferences, stateTexts } from "../src/state/state.ts";
import { conditionText, whoText } from "../src/state/words.ts";
import { draftOf, isSame, stateOf } from "../src/targeting/draft.ts";
import { fieldProblemOf, problemsIn, requirementKey } from "../src/targeting/problems.ts";
import { type RequiredFlag, requirementTree } from "../src/targeting/requirement-tree.ts";
import { audienceReason, requirementLines } from "../src/targeting/try-user.ts";
import { flag as listedFlag } from "./listed-flag.ts";

const country: Condition = { attribute: "country", operator: "equals", value: "DE" };
const inBeta: Condition = { audience: "beta" };
const paymentsOn: Condition = { flag: "payments", is: "on" };
const base: State = { enabled: true, rollout_percentage: 100, targeting_rules: [] };

describe("the words of references", () => {
  it.each<[string, Condition]>([
    ["in audience beta", inBeta],
    ["flag payments is on", paymentsOn],
    ["flag color serves blue or red", { flag: "color", is: ["blue", "red"] }],
  ])("are: %s", (text, condition) => {
    expect(conditionText(condition)).toBe(text);
  });

  it("say whom a rule matches", () => {
    expect(whoText({ conditions: [paymentsOn, country, inBeta] })).toBe(
      "users in audience beta whose country is DE and for whom flag payments is on",
    );
    expect(whoText({ conditions: [paymentsOn] })).toBe("users for whom flag payments is on");
  });
});

describe("a state with references", () => {
  const requires: Requirement[] = [{ flag: "payments", is: "on" }];
  const state: State = {
    ...base,
    requires,
    targeting_rules: [{ conditions: [inBeta, paymentsOn, country] }],
  };

  it("is the same after it was edited without a change", () => {
    expect(stateOf(draftOf(state))).toEqual(state);
    expect(isSame(draftOf(state), state)).toBe(true);
  });

  it("describes its required flags", () => {
    expect(stateTexts(state)).toContain("Requires flag payments is on");
  });

  it("pairs a changed requirement with the former one", () => {
    const after = { ...state, requires: [{ flag: "payments", is: "off" as const }] };
    expect(stateDifferences(state, after).map(differenceText)).toEqual([
      "Required flag: flag payments is on → flag payments is off",
    ]);
  });

  it("names audiences that were added to a rule", () => {
    const rule = (conditions: Condition[]) => [{ id: "r", conditions }];
    const before = { ...base, targeting_rules: rule([country]) };
    const after = { ...base, targeting_rules: rule([country, inBeta]) };
    expect(stateDifferences(before, after).map(differenceText)).toEqual([
      "Rule 1 changed (Condition added: in audience beta)",
    ]);
  });

  it("removes the last required flag with an empty list", () => {
    expect(requestFor(base, ["requires"])).toEqual({ requires: [] });
  });

  it("cannot be saved without a flag, a variation or an audience", () => {
    const draft = draftOf({
      ...base,
      requires: [
        { flag: "", is: "on" },
        { flag: "color", is: [] },
      ],
      targeting_rules: [{ conditions: [{ audience: "" }, { flag: "", is: "on" }] }],
    });
    expect([...problemsIn(draft, undefined, "en").values()]).toEqual([
      "Choose an audience.",
      "Choose a flag.",
      "Choose a flag.",
      "Choose at least one variation.",
    ]);
  });

  it("shows the circle that the API names at the required flag", () => {
    const facts = { status: 400, code: "VALIDATION_001", requestId: null, retryAfter: null };
    const error = new ApiProblem("/requires/0/flag a → b → a is a circle of requirements", facts);
    expect(fieldProblemOf(error, draftOf(state))).toMatchObject({
      key: requirementKey("flag", 0),
      text: "Not possible: a → b → a is a circle of requirements",
    });
  });
});

describe("the tree of required flags", () => {
  const flag = (key: string, ...required: string[]) => {
    const listed = listedFlag(key);
    const requires = required.map((other) => ({ flag: other, is: "on" as const }));
    const [state] = listed.environments;
    if (state === undefined) throw new Error("the flag has no state");
    return { ...listed, environments: [{ ...state, requires }] };
  };
  const environmentId = listedFlag("a").environments[0]?.environment_id ?? "";
  const shape = (nodes: readonly RequiredFlag[]): string =>
    nodes
      .map(({ requirement, requires, isRepeated }) => {
        const inner = requires.length === 0 ? "" : `(${shape(requires)})`;
        return `${requirement.flag}${isRepeated ? "*" : ""}${inner}`;
      })
      .join(" ");

  it("expands a flag that occurs twice once, so that it stays small", () => {
    const flags = [flag("a", "c"), flag("b", "a", "c"), flag("c")];
    const requires: Requirement[] = [
      { flag: "a", is: "on" },
      { flag: "b", is: "on" },
    ];
    expect(shape(requirementTree(flags, environmentId, requires))).toBe("a(c) b(a* c*)");
  });

  it("ends at an unknown flag", () => {
    expect(shape(requirementTree([], environmentId, [{ flag: "gone", is: "on" }]))).toBe("gone");
  });
});

describe("the flags that a switch affects", () => {
  const dependent = (flag_key: string, changed: Partial<Dependent> = {}): Dependent => ({
    flag_id: flag_key,
    flag_key,
    environment_id: "production",
    environment_name: "production",
    enabled: true,
    requires: [flag_key, "payments"],
    is: "on",
    ...changed,
  });
  const off = { environmentId: "production", enabled: false };

  it("are those that are on and need the other position", () => {
    const dependents = [
      dependent("checkout"),
      dependent("disabled", { enabled: false }),
      dependent("elsewhere", { environment_id: "staging" }),
      dependent("fallback", { is: "off" }),
    ];
    const keys = (enabled: boolean) =>
      affectedBy(dependents, { ...off, enabled }).map(({ flag_key }) => flag_key);
    expect([keys(false), keys(true)]).toEqual([["checkout"], ["fallback"]]);
  });

  it("are named in a warning", () => {
    const dependents = [dependent("checkout"), dependent("cart")];
    expect(dependentsWarning("payments", { dependents, total: 2 }, off)).toBe(
      "Turning payments off also turns off 2 flags, or those of their rules that require it: cart and checkout.",
    );
    expect(dependentsWarning("payments", { dependents: [], total: 0 }, off)).toBeUndefined();
  });

  it("are at least so many if the API returned a part of them", () => {
    const part = { dependents: [dependent("checkout")], total: 5_000 };
    expect(dependentsWarning("payments", part, off)).toContain("also turns off at least 1 flag,");
  });

  it("are described by their path", () => {
    expect(pathText(["a", "b", "c"])).toBe("a requires b, which requires c");
  });
});

describe("the explanation for a user", () => {
  const trace = { flag: "payments", is: "on" as const, held: false, value: false };

  it("has a line for each flag of the chain that decides", () => {
    const billing = { ...trace, flag: "billing", variation: "off", reason: "disabled" };
    const requirement = { ...trace, variation: "off", reason: "prerequisite_failed" };
    expect(requirementLines({ ...requirement, because: [billing] })).toEqual([
      "payments is off: a flag that it requires has another value",
      "billing is off: it is off for everyone",
    ]);
  });

  it.each([
    ["the user is in its list", { held: true, listed: true, alternatives: [] }],
    [
      "alternative 2 matches",
      {
        held: true,
        alternatives: [
          { matched: false, conditions: [] },
          { matched: true, conditions: [] },
        ],
      },
    ],
    [
      "the user is not in its list, and it has no alternatives",
      { held: false, listed: false, alternatives: [] },
    ],
  ])("says why a user is in an audience: %s", (text, given) => {
    expect(audienceReason({ audience: "beta", ...given })).toBe(text);
  });
});
