import type { Audience, ResolvedState, State, ValueType } from "./flag-state.ts";
import { categoryOf } from "./operators/catalogue.ts";
import { arrayOr, conditionsIn, type FindAudience, referredKeys } from "./references.ts";

/**
 * Features that flags can need beyond those of release 0.1. An evaluator that does not support one of them treats the
 * flag as not found. So a later release adds features, and never changes the meaning of a rule set for an older
 * evaluator.
 */
export const knownNeeds = [
  "audiences",
  "buckets",
  "lists",
  "match-case",
  "requires",
  "values",
] as const;
export type Need = (typeof knownNeeds)[number];

/**
 * Returns the features that a flag needs, in alphabetical order. Those of its audiences are included only with
 * `audienceOf`, because an audience changes without the flags that use it. Ignores malformed rules.
 */
export function needsOf(
  state: State & Pick<ResolvedState, "value_type">,
  audienceOf: FindAudience = () => undefined,
): Need[] {
  const needs = new Set<Need>();
  const { audiences, flags } = referredKeys(state);
  if (audiences.length > 0) needs.add("audiences");
  for (const key of audiences)
    for (const need of needsOfAudience(audienceOf(key) ?? { match: [] })) needs.add(need);
  if (flags.length > 0) needs.add("requires");
  if (needsBuckets(state)) needs.add("buckets");
  if (conditionsIn(state.targeting_rules).some(matchesCase)) needs.add("match-case");
  if (state.value_type !== undefined && state.value_type !== "boolean") needs.add("values");
  return needs.size === 0 ? noNeeds : [...needs].sort();
}

const noNeeds: Need[] = [];

/** Returns the features that an audience needs, in alphabetical order. */
export function needsOfAudience({ match, list }: Audience): Need[] {
  const needs: Need[] = [];
  if (list !== undefined) needs.push("lists");
  if (match.flat().some(matchesCase)) needs.push("match-case");
  return needs;
}

function matchesCase(condition: object): boolean {
  return "match_case" in condition && condition.match_case === true;
}

function needsBuckets({ bucket_by, bucket_seed, ...state }: State): boolean {
  if (bucket_by !== undefined || bucket_seed !== undefined) return true;
  const rules = arrayOr(state.targeting_rules);
  const percentages = [state, ...rules].map((each) => each?.rollout_percentage);
  return percentages.some((percentage) => !Number.isInteger(percentage ?? 0));
}

/** The parts of stored rules that an older evaluator may not know. */
type Given = {
  needs?: readonly string[] | undefined;
  value_type?: string | undefined;
  targeting_rules: readonly { conditions?: readonly object[] }[];
  requires?: readonly object[] | undefined;
};

/**
 * Returns the first part that this evaluator does not know: a feature in `needs`, a type, or a part of a condition.
 * Undefined if it knows everything. A flag with an unknown part must count as not found. Skipping a rule that excludes
 * users would include them.
 */
export function findUnknown(given: Given): string | undefined {
  const { needs = [], value_type, targeting_rules: rules, requires } = given;
  const feature = needs.find((need) => !knownNeeds.includes(need as Need));
  if (feature !== undefined) return feature;
  if (value_type !== undefined && !valueTypes.includes(value_type as ValueType)) return value_type;
  // An SDK passes rules as it received them. Malformed ones never hold, which the evaluator decides.
  for (const rule of rules) {
    const unknown = findUnknownCondition(arrayOr(rule?.conditions));
    if (unknown !== undefined) return unknown;
  }
  return requires && findUnknownCondition(arrayOr(requires));
}

/**
 * Returns the first operator, kind of condition or `is` of a requirement that this evaluator does not know. Undefined if
 * it knows all of them. It also serves for the conditions of an audience.
 */
export function findUnknownCondition(conditions: readonly object[]): string | undefined {
  for (const condition of conditions) {
    const unknown = unknownPartOf(condition);
    if (unknown !== undefined) return unknown;
  }
  return undefined;
}

function unknownPartOf(condition: object): string | undefined {
  if (typeof condition !== "object" || condition === null) return undefined;
  const { operator } = condition as { operator?: unknown };
  if (typeof operator === "string" && categoryOf(operator) === undefined) return operator;
  if ("flag" in condition) return isKnownIs((condition as { is?: unknown }).is) ? undefined : "is";
  if ("attribute" in condition || "audience" in condition) return undefined;
  // A condition of another kind is named by its first member.
  return Object.keys(condition)[0] ?? "condition";
}

function isKnownIs(is: unknown): boolean {
  if (Array.isArray(is)) return is.every((key) => typeof key === "string");
  return is === "on" || is === "off";
}

const valueTypes: readonly ValueType[] = ["boolean", "string", "number", "object"];
