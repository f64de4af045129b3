import { type CompiledRule, compileRule } from "./compile-rule.ts";
import type { EvaluationContext } from "./context.ts";
import type { ResolvedState } from "./flag-state.ts";
import { type Outcome, outcomes } from "./outcome.ts";
import { compileRollout, outcomeOf, type Rollout } from "./rollout.ts";

export type CompiledFlag = {
  readonly key: string;
  /** The outcome, if it is the same for every context. `evaluate` returns it too. */
  readonly constant: Outcome | undefined;
  readonly evaluate: Evaluate;
  /** The parts of `evaluate`, which `compileAll` combines with the plans of other flags. */
  readonly plan: Plan;
};

/** The rules that can be reached and can match, in order, and the result if none of them matches. */
export type Plan = {
  readonly rules: readonly CompiledRule[];
  readonly otherwise: Outcome | Rollout;
};

type Evaluate = (context: EvaluationContext) => Outcome;

/** Compiles the state of a flag. Malformed data never throws: it yields a flag that evaluates to off. */
export function compile(flag: ResolvedState): CompiledFlag {
  return compileWith(flag, compileRules(flag));
}

/**
 * Returns the compiled rules of a flag; none while the flag is disabled. The result is cached for the lifetime of the
 * state object, which is immutable. `explain` also needs the rules that the plan omits, and compiling them can cost far
 * more than evaluating them.
 */
export function compileRules(flag: ResolvedState): readonly CompiledRule[] {
  if (!isEnabled(flag) || !Array.isArray(flag.targeting_rules)) return [];
  let rules = rulesOfFlags.get(flag);
  if (rules === undefined) {
    rules = flag.targeting_rules.map((rule) => compileRule(flag, rule));
    rulesOfFlags.set(flag, rules);
  }
  return rules;
}

const rulesOfFlags = new WeakMap<ResolvedState, readonly CompiledRule[]>();

export function compileWith(flag: ResolvedState, rules: readonly CompiledRule[]): CompiledFlag {
  const key = flag?.key;
  const plan = planOf(flag, rules);
  const result = follow(plan);
  return typeof result === "function"
    ? { key, constant: undefined, evaluate: result, plan }
    : { key, constant: result, evaluate: () => result, plan };
}

function isEnabled(flag: ResolvedState): boolean {
  return flag?.enabled === true && typeof flag.key === "string";
}

function planOf(flag: ResolvedState, rules: readonly CompiledRule[]): Plan {
  if (!isEnabled(flag)) return { rules: [], otherwise: outcomes.disabled };
  if (!Array.isArray(flag.targeting_rules)) return { rules: [], otherwise: outcomes.default };
  if (flag.targeting_rules.length > 0) return planOfRules(rules);
  const rollout = compileRollout(flag, flag.rollout_percentage);
  return { rules: [], otherwise: rollout ?? outcomes.static };
}

/** Omits rules that can never match, and all rules after one without conditions. */
function planOfRules(rules: readonly CompiledRule[]): Plan {
  const possible = rules.filter(({ conditions }) => conditions.every(({ canHold }) => canHold));
  const forEveryone = possible.findIndex(({ conditions }) => conditions.length === 0);
  return {
    rules: forEveryone === -1 ? possible : possible.slice(0, forEveryone),
    otherwise: possible[forEveryone]?.result ?? outcomes.default,
  };
}

/** Maximum number of rules that are chained, each calling the next. It bounds the depth of the stack. */
const maxChained = 16;

/** Compiles a plan. Chained functions take 0.85 of a loop's time (bench `evaluation`, "rules, 100 flags a user"). */
function follow({ rules, otherwise }: Plan): Outcome | Evaluate {
  if (rules.length === 0) return "decide" in otherwise ? otherwise.decide : otherwise;
  if (rules.length > maxChained)
    return (context) =>
      outcomeOf(rules.find(({ matches }) => matches(context))?.result ?? otherwise, context);
  return rules.reduceRight((next, { matches, result }) => {
    const decide = decisionOf(result);
    return (context) => (matches(context) ? decide(context) : next(context));
  }, decisionOf(otherwise));
}

function decisionOf(result: Outcome | Rollout): Evaluate {
  return "decide" in result ? result.decide : () => result;
}
