import { buckets } from "./bucket.ts";
import { compileRules, compileWith } from "./compile-flag.ts";
import type { CompiledRule } from "./compile-rule.ts";
import { compileSplitBucket, isSplit } from "./compile-serve.ts";
import type { EvaluationContext } from "./context.ts";
import type { Condition, ResolvedState, Serve, TargetingRule } from "./flag-state.ts";
import type { Obstacle } from "./operators/operator.ts";
import type { Outcome } from "./outcome.ts";
import { outcomeOf } from "./rollout.ts";

type ConditionTrace = {
  attribute: string;
  operator: string;
  held: boolean;
  /** The reason why the condition could not be evaluated. */
  obstacle?: Obstacle;
};

type RuleTrace = {
  index: number;
  id?: string;
  name?: string;
  /** False if the flag is disabled or an earlier rule matched. The rule was not evaluated then. */
  reached: boolean;
  matched: boolean;
  /** Set for the matching rule if a percentage below 100 applies: whether the user is inside it. */
  inside_percentage?: boolean;
  /** All conditions of a rule that was reached, including those after the first that does not hold. */
  conditions: ConditionTrace[];
};

/** An outcome and its trace. It contains attribute names but never a value of the context. */
export type Explanation = Outcome & {
  rules: RuleTrace[];
  /** Set for a typed flag. */
  served?: Served;
};

/** The variation that a user gets, and why. */
type Served = {
  /** Index of the variation, or `callersDefault`. */
  index: number;
  /** The served variation or split. Undefined for users who are out, except those that the split excludes for lack of a unit. */
  serve: Serve | undefined;
  /** Bucket of the user in a split. Null for a user without a unit. Undefined without a split. */
  bucket: number | null | undefined;
};

/** Returns the outcome and its trace, computed from the same compiled conditions as `evaluate`. */
export function explain(flag: ResolvedState, context: EvaluationContext): Explanation {
  const steps = explainInSteps(flag, context);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Explains a flag like `explain`, but yields before each condition, as `evaluateInSteps` does. */
export function* explainInSteps(
  flag: ResolvedState,
  context: EvaluationContext,
): Generator<undefined, Explanation> {
  const compiled = compileRules(flag);
  const rules: RuleTrace[] = [];
  let matching: CompiledRule | undefined;
  let matchingRule: TargetingRule | undefined;
  for (const [index, rule] of rulesOf(flag).entries()) {
    const label = labelOf(rule, index);
    const compiledRule = compiled[index];
    if (compiledRule === undefined || matching !== undefined) {
      rules.push({ ...label, reached: false, matched: false, conditions: [] });
      continue;
    }
    const conditions = yield* traceConditions(rule, compiledRule, context);
    const matched = conditions.every(({ held }) => held);
    if (matched) {
      matching = compiledRule;
      matchingRule = rule;
    }
    const inside =
      matched && "decide" in compiledRule.result && compiledRule.result.firstOutside < buckets
        ? { inside_percentage: compiledRule.result.decide(context).value }
        : {};
    rules.push({ ...label, reached: true, matched, ...inside, conditions });
  }
  const { plan, served } = compileWith(flag, compiled);
  const outcome = outcomeOf(matching?.result ?? plan.otherwise, context);
  if (served === undefined) return { ...outcome, rules };
  const pick = (matching === undefined ? plan.pickOtherwise : matching.pick) ?? served.on;
  const index = outcome.value ? pick(context) : served.off;
  const serve = matchingRule?.serve ?? flag.serve;
  return { ...outcome, rules, served: { index, ...servedTo(outcome, serve, flag, context) } };
}

function servedTo(
  outcome: Outcome,
  serve: Serve | undefined,
  flag: ResolvedState,
  context: EvaluationContext,
): Omit<Served, "index"> {
  const mayDecide = outcome.value || outcome.reason === "split";
  const bucket = mayDecide && isSplit(serve) ? compileSplitBucket(flag)(context) : undefined;
  return outcome.value || bucket === null
    ? { serve, bucket }
    : { serve: undefined, bucket: undefined };
}

function rulesOf(flag: ResolvedState): readonly TargetingRule[] {
  return Array.isArray(flag?.targeting_rules) ? flag.targeting_rules : [];
}

function labelOf(rule: TargetingRule, index: number): Pick<RuleTrace, "index" | "id" | "name"> {
  const { id, name } = rule ?? {};
  return {
    index,
    ...(typeof id === "string" ? { id } : {}),
    ...(typeof name === "string" ? { name } : {}),
  };
}

function* traceConditions(
  rule: TargetingRule,
  { conditions }: CompiledRule,
  context: EvaluationContext,
): Generator<undefined, ConditionTrace[]> {
  const traces: ConditionTrace[] = [];
  for (const [index, { holds, obstacle }] of conditions.entries()) {
    yield;
    const label = labelOfCondition(rule?.conditions?.[index]);
    const held = holds(context);
    const why = held ? undefined : obstacle(context);
    traces.push({ ...label, held, ...(why === undefined ? {} : { obstacle: why }) });
  }
  return traces;
}

/** Stored data can contain any value in place of a name; only texts are returned. */
function labelOfCondition(condition: Condition | undefined) {
  const { attribute, operator } = condition ?? { attribute: "", operator: "" };
  return {
    attribute: typeof attribute === "string" ? attribute : "",
    operator: typeof operator === "string" ? operator : "",
  };
}
