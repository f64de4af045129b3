import { fieldMessageOf } from "../api/problem.ts";
import type { Requirement } from "../api/schema.d.ts";
import { capitalized } from "../state/words.ts";
import { percentageHint } from "../ui/parse-number.ts";
import { valueProblem } from "./conditions.ts";
import {
  type Draft,
  type DraftCondition,
  type DraftRule,
  maxConditions,
  maxRules,
} from "./draft.ts";
import type { Operators } from "./editor-context.ts";
import { hasInvalidWeight } from "./split.ts";

/** Messages by field. The keys are those of `fieldKey`, so they stay right when rules move. */
export type Problems = ReadonlyMap<string, string>;

/** Names a field of a rule: one of the rule itself, or one of a condition. */
export const fieldKey = (rule: string, field: string, condition = ""): string =>
  `${rule}/${condition}/${field}`;

/** Names a field of a required flag by its position. */
export const requirementKey = (field: "flag" | "is", at: number): string =>
  fieldKey("requires", field, String(at));

/** A message of the API about one field of a draft. It is out of date as soon as the part changes. */
type FieldProblem = {
  readonly key: string;
  readonly text: string;
  readonly part: DraftRule | Draft["requires"];
};

/** Returns the required flag and the field that an error of the API names. Positions begin at 0. */
function requirementPlaceOf(error: unknown) {
  const message = fieldMessageOf(error);
  if (message === undefined) return undefined;
  const [name, at, field] = message.path.filter((step) => step !== "state");
  if (name !== "requires" || at === undefined) return undefined;
  return {
    at: Number(at),
    field: field === "is" ? ("is" as const) : ("flag" as const),
    text: message.text,
  };
}

/** Returns the rule, the condition and the field that an error of the API names. Positions begin at 0. */
function placeOf(error: unknown) {
  const message = fieldMessageOf(error);
  if (message === undefined) return undefined;
  const [name, rule, part, ...rest] = message.path.filter((step) => step !== "state");
  if (name !== "targeting_rules" || rule === undefined) return undefined;
  const isCondition = part === "conditions" && rest[0] !== undefined;
  return {
    rule: Number(rule),
    condition: isCondition ? Number(rest[0]) : undefined,
    field: isCondition ? (rest[1] ?? "value") : (part ?? "rule"),
    text: message.text,
  };
}

/** Returns the field that an error of the API names, in the draft that was sent. */
export function fieldProblemOf(error: unknown, draft: Draft): FieldProblem | undefined {
  const required = requirementPlaceOf(error);
  if (required !== undefined) {
    const { field, at, text } = required;
    return { key: requirementKey(field, at), text: `Not possible: ${text}`, part: draft.requires };
  }
  const place = placeOf(error);
  if (place === undefined) return undefined;
  const rule = draft.rules[place.rule];
  if (rule === undefined) return undefined;
  const condition =
    place.condition === undefined ? undefined : rule.conditions[place.condition]?.uid;
  const key = fieldKey(rule.uid, place.field, condition);
  return { key, text: capitalized(place.text), part: rule };
}

/** Says which rule an error of the API is about, where no field can show it. Returns undefined for other errors. */
export function ruleProblemOf(error: unknown): string | undefined {
  const required = requirementPlaceOf(error);
  if (required !== undefined) return `Required flag ${required.at + 1}: ${required.text}`;
  const place = placeOf(error);
  if (place === undefined) return undefined;
  const condition = place.condition === undefined ? "" : `, condition ${place.condition + 1}`;
  return `Rule ${place.rule + 1}${condition}: ${place.text}`;
}

const weightHint = "Correct the percentages of the split.";

/** Checks a draft as far as the browser can. The API checks it completely. */
export function problemsIn(
  { rules, invalidPercentage: invalid, serve: ofFlag, requires = [] }: Draft,
  operators: Operators,
  locale: string,
): Problems {
  const found = new Map<string, string>();
  if (invalid !== undefined) found.set(fieldKey("", "rollout_percentage"), percentageHint);
  if (hasInvalidWeight(ofFlag)) found.set(fieldKey("", "serve"), weightHint);
  for (const { uid, conditions, name, value: effect, invalidPercentage, serve } of rules) {
    if (effect !== false && hasInvalidWeight(serve)) found.set(fieldKey(uid, "serve"), weightHint);
    if (effect !== false && invalidPercentage !== undefined)
      found.set(fieldKey(uid, "rollout_percentage"), percentageHint);
    if ((name ?? "").length > 200) found.set(fieldKey(uid, "name"), "At most 200 characters.");
    if (conditions.length > maxConditions)
      found.set(fieldKey(uid, "rule"), `At most ${maxConditions} conditions.`);
    for (const [key, text] of conditionProblems(uid, conditions, { operators, locale }))
      found.set(key, text);
  }
  requires.forEach((requirement, at) => {
    for (const [field, text] of requirementProblems(requirement))
      found.set(requirementKey(field, at), text);
  });
  if (rules.length > maxRules) found.set("rules", `At most ${maxRules} rules.`);
  return found;
}

/** Checks conditions. `owner` is the identity of their rule, or of their alternative in an audience. */
export function conditionProblems(
  owner: string,
  conditions: readonly DraftCondition[],
  { operators, locale }: { operators: Operators; locale: string },
): [key: string, text: string][] {
  return conditions.flatMap((condition) =>
    fieldProblems(condition, operators, locale).map(([field, text]): [string, string] => [
      fieldKey(owner, field, condition.uid),
      text,
    ]),
  );
}

type FieldText<Field extends string> = readonly [field: Field, text: string];

function fieldProblems(
  condition: DraftCondition,
  operators: Operators,
  locale: string,
): readonly FieldText<string>[] {
  if ("audience" in condition)
    return condition.audience === "" ? [["audience", "Choose an audience."]] : [];
  if ("flag" in condition) return requirementProblems(condition);
  const { attribute, operator, value } = condition;
  const problem = valueProblem(operators?.get(operator)?.category, value, locale);
  return [
    ...(attribute.trim() === "" ? [["attribute", "Enter the name of an attribute."] as const] : []),
    ...(problem === undefined ? [] : [["value", problem] as const]),
  ];
}

const requirementProblems = ({ flag, is }: Requirement): readonly FieldText<"flag" | "is">[] => [
  ...(flag === "" ? [["flag", "Choose a flag."] as const] : []),
  ...(is.length === 0 ? [["is", "Choose at least one variation."] as const] : []),
];

const noProblems: Problems = new Map();

/** Returns the messages of a rule. They are the same object if there are none, so that the rule is not rendered. */
export function problemsOf(problems: Problems, rule: string): Problems {
  const found = [...problems].filter(([key]) => key.startsWith(`${rule}/`));
  return found.length === 0 ? noProblems : new Map(found);
}

/** Says that a draft was not saved because of its fields. */
export const problemsText = (count: number): string =>
  count === 1 ? "Not saved: correct 1 field." : `Not saved: correct ${count} fields.`;
