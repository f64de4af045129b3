import { type CompiledRule, compileRule } from "./compile-rule.ts";
import { compileServe, isSplit, type Pick, variationIndex } from "./compile-serve.ts";
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
  /**
   * Returns the index of the variation for a context. Callers that have the outcome pass it. Undefined for boolean flags.
   */
  readonly variationOf: VariationOf | undefined;
  /** The parts of `variationOf`. Undefined for boolean flags. */
  readonly served: Served | undefined;
};

type VariationOf = (context: EvaluationContext, outcome?: Outcome) => number;

/** The variations of a typed flag. */
type Served = {
  /** The variation for users who are in, unless their rule has its own. */
  readonly on: Pick;
  /** Index of the variation for all other users. */
  readonly off: number;
};

/** The rules that can be reached and can match, in order, and the result if none of them matches. */
export type Plan = {
  readonly rules: readonly CompiledRule[];
  readonly otherwise: Outcome | Rollout;
  /** The variation with `otherwise`, if a rule decides it. Otherwise that of the state. */
  readonly pickOtherwise?: Pick | undefined;
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
  const evaluate = typeof result === "function" ? result : () => result;
  const constant = typeof result === "function" ? undefined : result;
  const served = servedBy(flag);
  const variationOf = served && compileVariation(plan, served, evaluate);
  return { key, constant, evaluate, plan, variationOf, served };
}

function servedBy(flag: ResolvedState): Served | undefined {
  if (flag?.variations === undefined) return undefined;
  return { on: compileServe(flag, flag.serve), off: variationIndex(flag, flag.off_variation) };
}

/** Looks for the rule of a user only if a rule has its own variations. */
function compileVariation(
  { rules, pickOtherwise }: Plan,
  { on, off }: Served,
  evaluate: Evaluate,
): VariationOf {
  const otherwise = pickOtherwise ?? on;
  if (rules.every(({ pick }) => pick === undefined) && otherwise === on)
    return (context, { value } = evaluate(context)) => (value ? on(context) : off);
  return (context, { value } = evaluate(context)) => {
    if (!value) return off;
    for (const { matches, pick } of rules) if (matches(context)) return (pick ?? on)(context);
    return otherwise(context);
  };
}

function isEnabled(flag: ResolvedState): boolean {
  return flag?.enabled === true && typeof flag.key === "string";
}

function planOf(flag: ResolvedState, rules: readonly CompiledRule[]): Plan {
  if (!isEnabled(flag)) return { rules: [], otherwise: outcomes.disabled };
  if (!Array.isArray(flag.targeting_rules)) return { rules: [], otherwise: outcomes.default };
  if (flag.targeting_rules.length > 0) return planOfRules(rules);
  const needsUnit = isSplit(flag.serve);
  const rollout = compileRollout(flag, flag.rollout_percentage, { needsUnit });
  return { rules: [], otherwise: rollout ?? outcomes.static };
}

/** Omits rules that can never match, and all rules after one without conditions. */
function planOfRules(rules: readonly CompiledRule[]): Plan {
  const possible = rules.filter(({ conditions }) => conditions.every(({ canHold }) => canHold));
  const forEveryone = possible.findIndex(({ conditions }) => conditions.length === 0);
  return {
    rules: forEveryone === -1 ? possible : possible.slice(0, forEveryone),
    otherwise: possible[forEveryone]?.result ?? outcomes.default,
    pickOtherwise: possible[forEveryone]?.pick,
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
