import { type CompiledCondition, compileCondition, neverHolds } from "./compile-condition.ts";
import type { EvaluationContext } from "./context.ts";
import type { FlagState, TargetingRule } from "./flag-state.ts";
import { type Outcome, outcomes } from "./outcome.ts";
import { compileRollout, type Rollout } from "./rollout.ts";

export type CompiledRule = {
  readonly conditions: readonly CompiledCondition[];
  /** Whether all conditions hold. */
  readonly matches: (context: EvaluationContext) => boolean;
  /** What those get whom it matches: the same for all, or by their bucket. */
  readonly result: Outcome | Rollout;
};

export function compileRule(flag: FlagState, rule: TargetingRule): CompiledRule {
  const conditions = isWellFormed(rule) ? rule.conditions.map(compileCondition) : [neverHolds];
  return { conditions, matches: allOf(conditions), result: resultOf(flag, rule) };
}

/** Rules arrive as they were stored; one of another shape is for nobody. */
function isWellFormed(rule: TargetingRule): boolean {
  return (
    typeof rule === "object" &&
    rule !== null &&
    Array.isArray(rule.conditions) &&
    (rule.value === undefined || typeof rule.value === "boolean")
  );
}

function resultOf(flag: FlagState, rule: TargetingRule): Outcome | Rollout {
  if (rule?.value === false) return outcomes.matchOff;
  const percentage = rule?.rollout_percentage ?? flag.rollout_percentage;
  return compileRollout(flag.key, percentage) ?? outcomes.matchOn;
}

/**
 * Most rules have one condition or two, which need no loop (bench `evaluation`, row "rules, 100 flags a user": 1.15
 * times as long with one).
 */
function allOf(conditions: readonly CompiledCondition[]): CompiledRule["matches"] {
  const asked = conditions.map(({ holds }) => holds);
  const [first, second, third] = asked;
  if (first === undefined) return () => true;
  if (second === undefined) return first;
  if (third === undefined) return (context) => first(context) && second(context);
  return (context) => {
    for (const holds of asked) if (!holds(context)) return false;
    return true;
  };
}
