import { compileRequirement } from "./compile-requirement.ts";
import { compileRule, withoutConstants } from "./compile-rule.ts";
import { compileServe, isSplit, variationIndex } from "./compile-serve.ts";
import type {
  CompiledFlag,
  CompiledRequirement,
  CompiledRule,
  Evaluate,
  Plan,
  References,
  Served,
  VariationOf,
} from "./compiled.ts";
import type { ResolvedState } from "./flag-state.ts";
import { type Outcome, outcomes } from "./outcome.ts";
import { noKeys, noReferences, type ReferredKeys, referredKeys } from "./references.ts";
import { compileRollout, outcomeOf, type Rollout } from "./rollout.ts";

/**
 * Compiles the state of a flag. Malformed data never throws: it yields a flag that evaluates to off. So does a reference
 * that `references` lacks, but callers must treat such a flag as not found (`findMissing`).
 */
export function compile(flag: ResolvedState, references: References = noReferences): CompiledFlag {
  const parts = compileParts(flag, references);
  const plan = planOf(flag, parts);
  const result = follow(plan);
  const evaluate = typeof result === "function" ? result : () => result;
  const constant = typeof result === "function" ? undefined : result;
  const served = servedBy(flag);
  const variationOf = served && compileVariation(plan, served, evaluate);
  const { rules, requirements } = parts;
  return {
    ...{ key: flag?.key, state: flag, constant, evaluate, rules, plan },
    ...{ variationOf, served, requirements },
  };
}

/** The rules and requirements of an enabled flag. */
type Parts = {
  readonly rules: readonly CompiledRule[];
  readonly requirements: readonly CompiledRequirement[] | undefined;
  /** False if a reference is unknown. */
  readonly isComplete: boolean;
};

const partsOfDisabled: Parts = { rules: [], requirements: undefined, isComplete: true };
const partsOfIncomplete: Parts = { rules: [], requirements: undefined, isComplete: false };

/** Returns the compiled parts of a flag; none while the flag is disabled or lacks a reference. */
function compileParts(flag: ResolvedState, references: References): Parts {
  if (!isEnabled(flag)) return partsOfDisabled;
  const { targeting_rules: rules, requires } = flag;
  const keys = referredKeys(flag);
  const isComplete = isListOfRequirements(requires) && hasAll(references, keys);
  if (!isComplete) return partsOfIncomplete;
  const own = keys === noKeys ? noReferences : references;
  return {
    rules: Array.isArray(rules)
      ? (rules as typeof flag.targeting_rules).map((rule) => compileRule(flag, rule, own))
      : [],
    requirements: requires?.map((requirement) =>
      compileRequirement(requirement, references.flags.get(requirement.flag) as CompiledFlag),
    ),
    isComplete: true,
  };
}

function isListOfRequirements(value: unknown): boolean {
  if (value === undefined) return true;
  return Array.isArray(value) && value.every((each) => typeof each?.flag === "string");
}

function hasAll({ audiences, flags }: References, keys: ReferredKeys): boolean {
  return (
    keys.audiences.every((key) => audiences.has(key)) && keys.flags.every((key) => flags.has(key))
  );
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

function planOf(flag: ResolvedState, { rules, requirements = [], isComplete }: Parts): Plan {
  if (!isEnabled(flag)) return { rules: [], otherwise: outcomes.disabled };
  if (!isComplete) return { rules: [], otherwise: outcomes.default };
  if (requirements.some(({ constant }) => constant === false))
    return { rules: [], otherwise: outcomes.prerequisiteFailed };
  const plan = planOfEnabled(flag, rules);
  const gates = requirements.filter(({ constant }) => constant === undefined).map(gateOf);
  return gates.length === 0 ? plan : { ...plan, rules: [...gates, ...plan.rules] };
}

/** Returns a requirement as a rule, which excludes a user if the requirement is not met. */
function gateOf({ unmet }: CompiledRequirement): CompiledRule {
  const result = outcomes.prerequisiteFailed;
  return { conditions: [unmet], matches: unmet.holds, result, pick: undefined };
}

function planOfEnabled(flag: ResolvedState, rules: readonly CompiledRule[]): Plan {
  if (!Array.isArray(flag.targeting_rules)) return { rules: [], otherwise: outcomes.default };
  if (flag.targeting_rules.length > 0) return planOfRules(rules);
  const needsUnit = isSplit(flag.serve);
  const rollout = compileRollout(flag, flag.rollout_percentage, { needsUnit });
  return { rules: [], otherwise: rollout ?? outcomes.static };
}

/** Omits rules that can never match, and all rules after one without conditions. */
function planOfRules(rules: readonly CompiledRule[]): Plan {
  const possible = rules
    .filter(({ conditions }) => conditions.every(({ canHold }) => canHold))
    .map(withoutConstants);
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
