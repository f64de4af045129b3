import type { ResolvedState, State, ValueType } from "./flag-state.ts";
import { categoryOf } from "./operators/catalogue.ts";

/**
 * Features that flags can need beyond those of release 0.1. An evaluator that does not support one of them treats the
 * flag as not found. So a later release adds features, and never changes the meaning of a rule set for an older
 * evaluator.
 */
export const knownNeeds = ["buckets", "match-case", "values"] as const;
export type Need = (typeof knownNeeds)[number];

/** Returns the features that a flag needs, in alphabetical order. */
export function needsOf(state: State & Pick<ResolvedState, "value_type">): Need[] {
  const needs: Need[] = [];
  if (needsBuckets(state)) needs.push("buckets");
  const conditions = state.targeting_rules.flatMap((rule) => rule.conditions);
  if (conditions.some(({ match_case }) => match_case === true)) needs.push("match-case");
  if (state.value_type !== undefined && state.value_type !== "boolean") needs.push("values");
  return needs;
}

function needsBuckets({ bucket_by, bucket_seed, ...state }: State): boolean {
  if (bucket_by !== undefined || bucket_seed !== undefined) return true;
  const percentages = [state, ...state.targeting_rules].map((each) => each.rollout_percentage);
  return percentages.some((percentage) => !Number.isInteger(percentage ?? 0));
}

/** The parts of stored rules that an older evaluator may not know. */
type Given = {
  needs?: readonly string[] | undefined;
  value_type?: string | undefined;
  targeting_rules: readonly { conditions?: readonly { operator?: unknown }[] }[];
};

/**
 * Returns the first feature in `needs`, or the first operator, that this evaluator does not know; undefined if it knows
 * everything. A flag with an unknown part must count as not found. Skipping a rule that excludes users would include
 * them.
 */
export function findUnknown(given: Given): string | undefined {
  const { needs = [], value_type, targeting_rules: rules } = given;
  const feature = needs.find((need) => !knownNeeds.includes(need as Need));
  if (feature !== undefined) return feature;
  if (value_type !== undefined && !valueTypes.includes(value_type as ValueType)) return value_type;
  for (const rule of rules) {
    // An SDK passes rules as it received them. Malformed ones never hold, which the evaluator decides.
    if (!Array.isArray(rule?.conditions)) continue;
    for (const condition of rule.conditions) {
      const operator: unknown = condition?.operator;
      if (typeof operator === "string" && categoryOf(operator) === undefined) return operator;
    }
  }
  return undefined;
}

const valueTypes: readonly ValueType[] = ["boolean", "string", "number", "object"];
