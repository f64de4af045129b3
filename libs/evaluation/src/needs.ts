import type { State } from "./flag-state.ts";
import { operatorNames } from "./operators/catalogue.ts";

/**
 * What an evaluator must know beyond the rules of release 0.1 to evaluate a flag. An evaluator that lacks a word treats
 * the flag as not found. So a later release adds words, and never changes the meaning of a rule set for an older
 * evaluator.
 */
export const knownNeeds = ["buckets", "match-case"] as const;
export type Need = (typeof knownNeeds)[number];

/** Returns the words that a state needs, in alphabetical order. */
export function needsOf(state: State): Need[] {
  const needs: Need[] = [];
  if (needsBuckets(state)) needs.push("buckets");
  const conditions = state.targeting_rules.flatMap((rule) => rule.conditions);
  if (conditions.some(({ match_case }) => match_case === true)) needs.push("match-case");
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
  targeting_rules: readonly { conditions?: readonly { operator?: unknown }[] }[];
};

/**
 * Returns the first word of `needs`, or the first operator, that this evaluator does not know; undefined if it knows
 * everything. A flag with an unknown part must count as not found. Skipping a rule that excludes users would include
 * them.
 */
export function findUnknown({ needs = [], targeting_rules: rules }: Given): string | undefined {
  const word = needs.find((need) => !knownNeeds.includes(need as Need));
  if (word !== undefined) return word;
  for (const rule of rules)
    for (const { operator } of rule?.conditions ?? [])
      if (typeof operator === "string" && !isOperator(operator)) return operator;
  return undefined;
}

const isOperator = (name: string): boolean => (operatorNames as readonly string[]).includes(name);
