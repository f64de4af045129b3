import { compileRules, compileWith } from "./compile-flag.ts";
import type { CompiledRule } from "./compile-rule.ts";
import type { EvaluationContext } from "./context.ts";
import type { Condition, FlagState, TargetingRule } from "./flag-state.ts";
import type { Obstacle } from "./operators/operator.ts";
import type { Outcome } from "./outcome.ts";

export type ConditionTrace = {
  attribute: string;
  operator: string;
  held: boolean;
  /** Why it does not hold, when it is not for the comparison. */
  obstacle?: Obstacle;
};

export type RuleTrace = {
  index: number;
  id?: string;
  name?: string;
  /** False when the flag is disabled or an earlier rule has decided; then nothing of it was looked at. */
  reached: boolean;
  matched: boolean;
  /** Of the rule that decided, when a percentage below 100 applies: whether the user is inside. */
  inside_percentage?: boolean;
  /** All conditions of a rule that was reached, also those after the first that does not hold. */
  conditions: ConditionTrace[];
};

/** Never holds a value of the context: it says what was asked of whom, not who it was. */
export type Explanation = Outcome & { rules: RuleTrace[] };

/** The outcome and how it came about, from the very conditions that `evaluate` asks. */
export function explain(flag: FlagState, context: EvaluationContext): Explanation {
  const compiled = compileRules(flag);
  const outcome = compileWith(flag, compiled).evaluate(context);
  const matching = compiled.findIndex((rule) => rule.matches(context));
  const last = matching === -1 ? compiled.length - 1 : matching;
  const rules = (Array.isArray(flag?.targeting_rules) ? flag.targeting_rules : []).map(
    (rule: TargetingRule, index: number): RuleTrace => {
      const label = labelOf(rule, index);
      const compiledRule = compiled[index];
      if (compiledRule === undefined || index > last) {
        return { ...label, reached: false, matched: false, conditions: [] };
      }
      const conditions = traceConditions(rule, compiledRule, context);
      if (index !== matching) return { ...label, reached: true, matched: false, conditions };
      const inside =
        "decide" in compiledRule.result
          ? { inside_percentage: compiledRule.result.decide(context).value }
          : {};
      return { ...label, reached: true, matched: true, ...inside, conditions };
    },
  );
  return { ...outcome, rules };
}

function labelOf(rule: TargetingRule, index: number): Pick<RuleTrace, "index" | "id" | "name"> {
  const { id, name } = rule ?? {};
  return {
    index,
    ...(typeof id === "string" ? { id } : {}),
    ...(typeof name === "string" ? { name } : {}),
  };
}

function traceConditions(
  rule: TargetingRule,
  { conditions }: CompiledRule,
  context: EvaluationContext,
): ConditionTrace[] {
  return conditions.map(({ holds, obstacle }, index) => {
    const { attribute, operator } = labelOfCondition(rule?.conditions?.[index]);
    if (holds(context)) return { attribute, operator, held: true };
    const why = obstacle(context);
    return { attribute, operator, held: false, ...(why === undefined ? {} : { obstacle: why }) };
  });
}

/** Stored data may hold anything where a name should be; only texts are shown. */
function labelOfCondition(condition: Condition | undefined) {
  const { attribute, operator } = condition ?? { attribute: "", operator: "" };
  return {
    attribute: typeof attribute === "string" ? attribute : "",
    operator: typeof operator === "string" ? operator : "",
  };
}
