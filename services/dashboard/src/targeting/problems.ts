import { fieldMessageOf } from "../api/problem.ts";
import type { Operator } from "../api/schema.d.ts";
import { capitalized } from "../state/words.ts";
import { percentageHint } from "../ui/parse-number.ts";
import { valueProblem } from "./conditions.ts";
import { type Draft, type DraftRule, maxConditions, maxRules } from "./draft.ts";
import { hasInvalidWeight } from "./split.ts";

/** Messages by field. The keys are those of `fieldKey`, so they stay right when rules move. */
export type Problems = ReadonlyMap<string, string>;

/** Names a field of a rule: one of the rule itself, or one of a condition. */
export const fieldKey = (rule: string, field: string, condition = ""): string =>
  `${rule}/${condition}/${field}`;

/** A message of the API about one field of a draft. It is out of date as soon as the rule changes. */
type FieldProblem = { readonly key: string; readonly text: string; readonly rule: DraftRule };

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
  const place = placeOf(error);
  if (place === undefined) return undefined;
  const rule = draft.rules[place.rule];
  if (rule === undefined) return undefined;
  const condition =
    place.condition === undefined ? undefined : rule.conditions[place.condition]?.uid;
  return { key: fieldKey(rule.uid, place.field, condition), text: capitalized(place.text), rule };
}

/** Says which rule an error of the API is about, where no field can show it. Returns undefined for other errors. */
export function ruleProblemOf(error: unknown): string | undefined {
  const place = placeOf(error);
  if (place === undefined) return undefined;
  const condition = place.condition === undefined ? "" : `, condition ${place.condition + 1}`;
  return `Rule ${place.rule + 1}${condition}: ${place.text}`;
}

const weightHint = "Correct the percentages of the split.";

/** Checks a draft as far as the browser can. The API checks it completely. */
export function problemsIn(
  { rules, invalidPercentage: invalid, serve: ofFlag }: Draft,
  operators: ReadonlyMap<string, Operator> | undefined,
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
    for (const { uid: condition, attribute, operator, value } of conditions) {
      if (attribute.trim() === "")
        found.set(fieldKey(uid, "attribute", condition), "Enter the name of an attribute.");
      const problem = valueProblem(operators?.get(operator)?.category, value, locale);
      if (problem !== undefined) found.set(fieldKey(uid, "value", condition), problem);
    }
  }
  if (rules.length > maxRules) found.set("rules", `At most ${maxRules} rules.`);
  return found;
}

const noProblems: Problems = new Map();

/** Returns the messages of a rule. They are the same object if there are none, so that the rule is not rendered. */
export function problemsOf(problems: Problems, rule: string): Problems {
  const found = [...problems].filter(([key]) => key.startsWith(`${rule}/`));
  return found.length === 0 ? noProblems : new Map(found);
}

/** Says that a draft was not saved because of its fields. */
export const problemsText = (count: number): string =>
  count === 1 ? "Not saved: correct 1 field." : `Not saved: correct ${count} fields.`;
