import { describe, expect, it } from "@jest/globals";
import { ApiProblem } from "../src/api/problem.ts";
import type { Operator } from "../src/api/schema.d.ts";
import {
  type FlagSettings,
  hasSameSettings,
  settingsAfterSave,
} from "../src/flags/flag-settings.ts";
import type { TargetingRule } from "../src/state/flag-state.ts";
import {
  attributeNames,
  fromLocalInput,
  numberFrom,
  plainNumber,
  toLocalInput,
  valueFor,
} from "../src/targeting/conditions.ts";
import {
  copyOf,
  draftAfterSave,
  draftOf,
  draggedTo,
  isSame,
  moved,
  newRule,
  stateOf,
} from "../src/targeting/draft.ts";
import { fieldKey, fieldProblemOf, problemsIn, ruleProblemOf } from "../src/targeting/problems.ts";

const rules: TargetingRule[] = [
  {
    id: "r-1",
    name: "Adults",
    conditions: [
      { attribute: "age", operator: "gte", value: 18 },
      { attribute: "country", operator: "in", value: "DE, AT" },
    ],
    rollout_percentage: 20,
  },
  { conditions: [], value: false },
  { name: "Staff", conditions: [{ attribute: "staff", operator: "equals", value: true }] },
];
const stored = { enabled: true, rollout_percentage: 50, targeting_rules: rules };

const operators = new Map(
  (
    [
      ["equals", "string"],
      ["in", "list"],
      ["gte", "number"],
      ["semver_gte", "semver"],
    ] as const
  ).map(([name, category]): [string, Operator] => [
    name,
    { name, category, description: "", example: "" },
  ]),
);

describe("the draft of a state", () => {
  it("equals the stored state, including the types of values, until an edit", () => {
    expect(stateOf(draftOf(stored))).toStrictEqual(stored);
    expect(isSame(draftOf(stored), stored)).toBe(true);
    expect(isSame({ ...draftOf(stored), enabled: false }, stored)).toBe(false);
  });

  it("has nothing to save if a change only repeats a default", () => {
    const draft = draftOf(stored);
    const repeated = draft.rules.map((rule) => ({ value: true, name: "", ...rule }));
    expect(isSame({ ...draft, rules: repeated }, stored)).toBe(true);
  });

  it("keeps what is typed while a save runs", () => {
    const sent = { ...draftOf(stored), rollout_percentage: 60 };
    const saved = stateOf(sent);
    expect(draftAfterSave(sent, sent, saved)).toBe(sent);
    const typed = { ...sent, rollout_percentage: 70 };
    expect(draftAfterSave(typed, sent, saved)).toBe(typed);
  });

  it("becomes the saved state if the API stored another one than was sent", () => {
    const sent = draftOf(stored);
    const saved = { ...stored, rollout_percentage: 40 };
    expect(draftAfterSave(sent, sent, saved)).toStrictEqual(draftOf(saved));
  });

  it("gives a copied rule another id, because ids name one rule", () => {
    const [rule] = draftOf(stored).rules;
    if (rule === undefined) throw new Error("a rule");
    const copy = copyOf(rule);
    expect(copy.uid).not.toBe(rule.uid);
    expect(copy.id).not.toBe(rule.id);
    expect(stateOf({ ...draftOf(stored), rules: [copy] }).targeting_rules).toStrictEqual([
      { ...rules[0], id: copy.id, name: "Adults (copy)" },
    ]);
  });

  it("moves rules by one position and by dragging", () => {
    const { rules: all } = draftOf(stored);
    const order = (list: readonly { uid: string }[]) => list.map(({ uid }) => uid.at(-1)).join("");
    expect(order(moved(all, 0, 1))).toBe("102");
    expect(order(moved(all, 0, -1))).toBe("012");
  });

  it("moves a dragged rule over those whose middle it passes, whatever their heights", () => {
    const rows = [
      { top: 0, bottom: 40 },
      { top: 50, bottom: 250 },
      { top: 260, bottom: 300 },
    ];
    expect([0, 100, 120, 250].map((top) => draggedTo(rows, 0, top))).toEqual([0, 0, 1, 2]);
    expect([50, 30, 15].map((top) => draggedTo(rows, 1, top))).toEqual([1, 1, 0]);
    expect([90, 75, 260].map((top) => draggedTo(rows, 1, top))).toEqual([2, 1, 2]);
  });
});

describe("the draft of a flag's settings", () => {
  const base: FlagSettings = {
    name: "Checkout",
    description: "",
    type: "release",
    tags: [],
    owner: null,
  };
  const sent = { ...base, name: "New checkout " };
  const saved = { ...base, name: "New checkout" };

  it("ends with the save that sent it", () => {
    expect(settingsAfterSave({ draft: sent, base }, sent, saved)).toBeUndefined();
  });

  it("keeps what is typed while a save runs, also if it is the former text", () => {
    const typed = { ...base };
    const after = settingsAfterSave({ draft: typed, base }, sent, saved);
    expect(after).toStrictEqual({ draft: typed, base: saved });
    expect(hasSameSettings(typed, saved)).toBe(false);
  });
});

describe("the values of conditions", () => {
  it("keep what was typed when the operator changes", () => {
    expect(valueFor("list", "DE, AT")).toStrictEqual(["DE", "AT"]);
    expect(valueFor("string", ["DE", "AT"])).toBe("DE, AT");
    expect(valueFor("number", 18)).toBe(18);
  });

  it("are numbers only if no typed character is lost", () => {
    expect(numberFrom("18", "en-US")).toBe(18);
    expect(numberFrom("1.", "en-US")).toBe("1.");
    expect(numberFrom("1.10", "en-US")).toBe("1.10");
    expect(numberFrom("1.125", "de-DE")).toBe("1.125");
    expect(numberFrom("", "en-US")).toBe("");
  });

  it("are plain numbers once the person leaves the field", () => {
    expect(plainNumber("2,5", "de-DE")).toBe(2.5);
    expect(plainNumber("2,5", "en-US")).toBe("2,5");
    expect(plainNumber("99.90", "en-US")).toBe("99.90");
  });

  it("name the same instant in the local time zone and in the rule", () => {
    expect(fromLocalInput(toLocalInput("2027-01-31T09:00:00Z"))).toBe("2027-01-31T09:00:00Z");
    expect(fromLocalInput(toLocalInput("2027-06-30T23:59:59+02:00"))).toBe("2027-06-30T21:59:59Z");
  });

  it("compare attributes, and the most used are suggested first", () => {
    const names = attributeNames([...rules, ...rules.slice(2)]);
    expect(names.slice(0, 3)).toStrictEqual(["staff", "age", "country"]);
    expect(names).toContain("app_version");
    expect(names.filter((name) => name === "country")).toHaveLength(1);
  });
});

describe("the problems of a draft", () => {
  const draft = draftOf(stored);
  const problem = (message: string, status = 400) =>
    new ApiProblem(message, { status, code: "VALIDATION_001", requestId: null, retryAfter: null });

  it("are shown at the field that the API names, also after the rules have moved", () => {
    const found = fieldProblemOf(
      problem("/targeting_rules/0/conditions/1/value must be a list"),
      draft,
    );
    expect(found?.key).toBe(fieldKey("rule-0", "value", "condition-1"));
    expect(found?.text).toBe("Must be a list");
    expect(moved(draft.rules, 0, 2)).toContain(found?.part);
    expect(fieldProblemOf(problem("/targeting_rules/2/name must be shorter"), draft)?.key).toBe(
      fieldKey("rule-2", "name"),
    );
  });

  it("are left to the panel of the page if they concern no rule", () => {
    const texts = [
      "/targeting_rules must be smaller",
      "/targeting_rules/9/name must be text",
      "No",
    ];
    for (const text of texts) expect(fieldProblemOf(problem(text), draft)).toBeUndefined();
    expect(fieldProblemOf(problem("/targeting_rules/0/name is", 503), draft)).toBeUndefined();
  });

  it("name the rule where no field can show them", () => {
    const message = "/state/targeting_rules/0/conditions/1/value must be a list";
    expect(ruleProblemOf(problem(message))).toBe("Rule 1, condition 2: must be a list");
    expect(ruleProblemOf(problem("/user must be an object"))).toBeUndefined();
  });

  it("mark a percentage field that contains no percentage", () => {
    const typed = { ...draft, rules: [{ ...newRule(), conditions: [], invalidPercentage: "2.5" }] };
    expect([...problemsIn(typed, operators, "de-DE").keys()]).toStrictEqual([
      fieldKey(typed.rules[0]?.uid ?? "", "rollout_percentage"),
    ]);
    expect(isSame(typed, stateOf(typed))).toBe(false);
  });

  it("are found before the draft is sent, if the browser can know them", () => {
    expect(problemsIn(draft, operators, "en-US").size).toBe(0);
    const wrong = draftOf({
      ...stored,
      targeting_rules: [
        {
          conditions: [
            { attribute: " ", operator: "equals", value: "x" },
            { attribute: "country", operator: "in", value: [] },
            { attribute: "age", operator: "gte", value: "old" },
            { attribute: "signed_up_at", operator: "gte", value: "2027-01-01T00:00:00Z" },
            { attribute: "app_version", operator: "semver_gte", value: "two" },
          ],
        },
      ],
    });
    expect([...problemsIn(wrong, operators, "en-US").keys()]).toStrictEqual([
      fieldKey("rule-0", "attribute", "condition-0"),
      fieldKey("rule-0", "value", "condition-1"),
      fieldKey("rule-0", "value", "condition-2"),
      fieldKey("rule-0", "value", "condition-4"),
    ]);
  });
});
