import type { AttributeCondition, Condition, Requirement } from "../api/schema.d.ts";
import { count } from "../ui/numbers.ts";
import type { Serve, TargetingRule } from "./flag-state.ts";
import { serveText } from "./serve.ts";

type Value = AttributeCondition["value"];
type Operator = AttributeCondition["operator"];

/** The operators as verbs that follow the name of an attribute. */
const verbs: Readonly<Record<Operator, string>> = {
  equals: "is",
  not_equals: "is not",
  contains: "contains",
  not_contains: "does not contain",
  starts_with: "starts with",
  ends_with: "ends with",
  matches_regex: "matches pattern",
  in: "is one of",
  not_in: "is none of",
  gt: "is greater than",
  gte: "is at least",
  lt: "is less than",
  lte: "is at most",
  semver_eq: "is version",
  semver_gt: "is after version",
  semver_gte: "is at least version",
  semver_lt: "is before version",
  semver_lte: "is at most version",
};

/** Comparisons of date-times read better in words of time. */
const timeVerbs: Readonly<Partial<Record<Operator, string>>> = {
  gt: "is after",
  gte: "is at or after",
  lt: "is before",
  lte: "is at or before",
};

/** Returns the verb of an operator. A newer server can have operators without one. */
export const verbOf = (operator: Operator): string => verbs[operator] ?? operator;

/** Returns whether a value is a date-time, as number operators take it. */
export function isTime(value: Value): value is string {
  return typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value);
}

/** Describes a condition: "country is one of DE, AT or CH", "in audience beta", "flag payments is on". */
export function conditionText(condition: Condition): string {
  if ("audience" in condition) return `in audience ${condition.audience || "…"}`;
  if ("flag" in condition) return requirementText(condition);
  const { value, match_case } = condition;
  const text = Array.isArray(value) ? itemsText(value, "or") : quoted(String(value));
  return `${comparisonText(condition)} ${text || "…"}${match_case === true ? " (exact case)" : ""}`;
}

/** Describes a required flag: "flag payments is on", "flag color serves blue or red". */
export const requirementText = ({ flag, is }: Requirement): string =>
  `flag ${flag || "…"} ${isText(is)}`;

const isText = (is: Requirement["is"]): string =>
  typeof is === "string" ? `is ${is}` : `serves ${itemsText(is, "or") || "…"}`;

/**
 * Returns the beginning of a condition, without the value that is compared: "country is one of", "flag payments". All of
 * the condition for an audience.
 */
export function comparisonText(condition: Condition): string {
  if ("audience" in condition) return conditionText(condition);
  if ("flag" in condition) return `flag ${condition.flag || "…"}`;
  const { attribute, operator, value } = condition;
  const verb = (isTime(value) ? timeVerbs[operator] : undefined) ?? verbOf(operator);
  return `${attribute || "…"} ${verb}`;
}

/** List items that a text names. The others are counted, because a list can have 1,000. */
const namedItems = 5;

/** Lists items: "DE, AT or 998 more". */
export function itemsText(
  items: readonly (string | number | boolean)[],
  word: "and" | "or",
): string {
  const named = items.slice(0, items.length > namedItems + 1 ? namedItems : items.length);
  const more = items.length - named.length;
  const texts = named.map((item) => quoted(String(item)));
  return joined(more > 0 ? [...texts, `${more} more`] : texts, word);
}

/** Joins texts: "a, b or c". */
export function joined(texts: readonly string[], word: "and" | "or"): string {
  const last = texts.at(-1) ?? "";
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(", ")} ${word} ${last}`;
}

/** Quotes a text whose borders would be unclear within a sentence. */
const quoted = (text: string): string => (/[\s,]/.test(text) ? `“${text}”` : text);

/** Describes the alternatives of an audience, one line for each. */
export const matchTexts = (match: readonly (readonly Condition[])[]): string[] =>
  match.map(
    (conditions, index) =>
      `Alternative ${index + 1}: ${joined(conditions.map(conditionText), "and")}`,
  );

/** Describes the list of an audience: "1,200 entries, compared with id". */
export const listText = (list: { attribute: string; count: number } | null): string =>
  list === null
    ? "none"
    : `${list.count === 1 ? "1 entry" : `${count(list.count)} entries`}, compared with ${list.attribute}`;

/** Names a rule by its name, or by its position, which begins at 0. */
export function ruleName(rule: { name?: string | undefined } | undefined, index: number): string {
  const name = rule?.name;
  return name === undefined || name.trim() === "" ? `rule ${index + 1}` : `rule “${name}”`;
}

type Who = { name?: string | undefined; conditions: readonly Condition[] };

/** Says whom a rule matches: "staff (email ends with @example.com)" or "users whose country is DE". */
export function whoText({ name, conditions }: Who): string {
  const text = joined(conditions.map(conditionText), "and");
  const isNamed = name !== undefined && name.trim() !== "";
  if (text === "") return isNamed ? `${name} (all users)` : "all users";
  return isNamed ? `${name} (${text})` : usersText(conditions);
}

/** Writes "users in audience beta whose country is DE and for whom flag payments is on". */
function usersText(conditions: readonly Condition[]): string {
  const texts = (isKind: (condition: Condition) => boolean) =>
    joined(conditions.filter(isKind).map(conditionText), "and");
  const inAudiences = texts((condition) => "audience" in condition);
  const clauses = [
    ["whose", texts((condition) => "attribute" in condition)],
    ["for whom", texts((condition) => "flag" in condition)],
  ].flatMap(([word, text]) => (text === "" ? [] : [`${word} ${text}`]));
  return ["users", inAudiences, joined(clauses, "and")].filter(Boolean).join(" ");
}

/** Names the attribute by which a percentage counts users: ", by company". Returns nothing for the user's id. */
export const countedBy = (attribute: string | undefined): string =>
  attribute === undefined ? "" : `, by ${quoted(attribute)}`;

/** Names the users without an attribute. A split by this attribute has no part for these users. */
export const withoutText = (attribute: string): string => `users without ${quoted(attribute)}`;

type Outcome = Pick<TargetingRule, "value" | "rollout_percentage">;

/** Says in a few words what a rule gives to its users. `serve` is what the flag or the rule serves. */
export function effectText(
  { value, rollout_percentage: percentage }: Outcome,
  serve?: Serve,
): string {
  if (value === false) return "off";
  const served = serve === undefined ? "on" : serveText(serve);
  return percentage === undefined || percentage === 100 ? served : `${served} for ${percentage} %`;
}

/** Describes the value that a rule gives to its users. Without its own percentage, the percentage of the flag applies. */
export const outcomeText = (rule: Outcome): string =>
  rule.value !== false && rule.rollout_percentage === undefined
    ? "on, for the percentage of the flag"
    : effectText(rule);

export const ruleText = (rule: TargetingRule): string => {
  const served = rule.serve === undefined ? "" : `, serves ${serveText(rule.serve)}`;
  return `${whoText({ conditions: rule.conditions })}: ${outcomeText(rule)}${served}`;
};

/** Describes the rules of a state, one line for each fact. */
export function rulesTexts(rules: readonly TargetingRule[]): string[] {
  if (rules.length === 0) return ["No rules: the percentage applies to all users"];
  return [
    ...rules.map((rule, index) => `${capitalized(ruleName(rule, index))}: ${ruleText(rule)}`),
    ...(rules.some(({ conditions }) => conditions.length === 0) ? [] : ["All other users: off"]),
  ];
}

export const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
