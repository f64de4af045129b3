import { buckets } from "./bucket.ts";
import { neverHolds } from "./compile-condition.ts";
import { compile } from "./compile-flag.ts";
import { compileRequirement, lastResultsOf, variationKeyOf } from "./compile-requirement.ts";
import { compileSplitBucket, isSplit } from "./compile-serve.ts";
import type {
  CompiledAudience,
  CompiledCondition,
  CompiledFlag,
  CompiledRequirement,
  CompiledRule,
  References,
} from "./compiled.ts";
import type { EvaluationContext } from "./context.ts";
import {
  type AttributeCondition,
  type Condition,
  isAudienceCondition,
  isRequirement,
  type ResolvedState,
  type Serve,
  type TargetingRule,
} from "./flag-state.ts";
import type { Pass } from "./last-result.ts";
import type { Obstacle } from "./operators/operator.ts";
import { type Outcome, outcomes } from "./outcome.ts";
import { noReferences } from "./references.ts";
import { outcomeOf } from "./rollout.ts";

type ConditionTrace = ComparisonTrace | AudienceTrace | RequirementTrace;

type ComparisonTrace = {
  attribute: string;
  operator: string;
  held: boolean;
  /** The reason why the condition could not be evaluated. */
  obstacle?: Obstacle;
};

type AudienceTrace = {
  audience: string;
  held: boolean;
  /** Whether the user is in the list. Absent for an audience without one. */
  listed?: boolean;
  /** The alternatives, until the first that matches. None for a user in the list, and beyond `maxDetails`. */
  alternatives: { matched: boolean; conditions: ComparisonTrace[] }[];
};

type RequirementTrace = {
  flag: string;
  is: "on" | "off" | string[];
  held: boolean;
  /** The value of the required flag: in or out. */
  value: boolean;
  /** Key of the variation of the required flag. Null for the caller's default. */
  variation: string | null;
  reason: Outcome["reason"];
  /**
   * The chain of unmet requirements of the required flag, if they decide: each flag requires the next one. It is shorter
   * beyond `maxDetails`.
   */
  because?: Omit<RequirementTrace, "because">[];
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
  /** The requirements of the flag. Absent without any, and for a disabled flag. */
  requires?: RequirementTrace[];
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

/**
 * Returns the outcome and its trace, computed from the same compiled conditions as `evaluate`. A state is compiled first,
 * which can cost far more than evaluating it.
 */
export function explain(
  flag: ResolvedState | CompiledFlag,
  context: EvaluationContext,
  references: References = noReferences,
): Explanation {
  const steps = explainInSteps(flag, context, references);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Explains a flag like `explain`, but yields before each condition, as `evaluateInSteps` does. */
export function* explainInSteps(
  given: ResolvedState | CompiledFlag,
  context: EvaluationContext,
  references: References = noReferences,
): Generator<undefined, Explanation> {
  const compiledFlag = isCompiled(given) ? given : compile(given, references);
  const { state: flag, rules: compiled, plan, served, requirements } = compiledFlag;
  const run: Run = { context, references, pass: new Map(), detailsLeft: maxDetails };
  const requires = yield* traceRequirements(requirements, run);
  const isHeldBack = requires?.some(({ held }) => !held) === true;
  const { rules, matchingIndex } = yield* traceRules(flag, isHeldBack ? [] : compiled, run);
  const matching = compiled[matchingIndex];
  const matchingRule = rulesOf(flag)[matchingIndex];
  const outcome = isHeldBack
    ? outcomes.prerequisiteFailed
    : outcomeOf(matching?.result ?? plan.otherwise, context);
  const traced = { ...outcome, rules, ...(requires === undefined ? {} : { requires }) };
  if (served === undefined) return traced;
  const pick = (matching === undefined ? plan.pickOtherwise : matching.pick) ?? served.on;
  const index = outcome.value ? pick(context) : served.off;
  const serve = matchingRule?.serve ?? flag.serve;
  return { ...traced, served: { index, ...servedTo(outcome, serve, flag, context) } };
}

/** A state is data, and contains no functions. */
function isCompiled(flag: ResolvedState | CompiledFlag): flag is CompiledFlag {
  return typeof (flag as CompiledFlag | undefined)?.evaluate === "function";
}

/** One explanation that is being made. */
type Run = {
  readonly context: EvaluationContext;
  readonly references: References;
  readonly pass: Pass;
  /** The number of comparisons and requirements that may still be traced. */
  detailsLeft: number;
};

/** Otherwise 5,000 conditions of one flag could refer to 1,000 comparisons each. */
const maxDetails = 10_000;

/** Traces rules until one matches. Its index is -1 if none does. Rules without compiled ones are not reached. */
function* traceRules(
  flag: ResolvedState,
  compiled: readonly CompiledRule[],
  run: Run,
): Generator<undefined, { rules: RuleTrace[]; matchingIndex: number }> {
  const rules: RuleTrace[] = [];
  let matchingIndex = -1;
  for (const [index, rule] of rulesOf(flag).entries()) {
    const label = labelOf(rule, index);
    const compiledRule = compiled[index];
    if (compiledRule === undefined || matchingIndex !== -1) {
      rules.push({ ...label, reached: false, matched: false, conditions: [] });
      continue;
    }
    const conditions = yield* traceConditions(rule, compiledRule, run);
    const matched = conditions.every(({ held }) => held);
    if (matched) matchingIndex = index;
    const inside =
      matched && "decide" in compiledRule.result && compiledRule.result.firstOutside < buckets
        ? { inside_percentage: compiledRule.result.decide(run.context).value }
        : {};
    rules.push({ ...label, reached: true, matched, ...inside, conditions });
  }
  return { rules, matchingIndex };
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
  run: Run,
): Generator<undefined, ConditionTrace[]> {
  const traces: ConditionTrace[] = [];
  for (const [index, compiled] of conditions.entries()) {
    yield;
    traces.push(yield* traceCondition(rule?.conditions?.[index], compiled, run));
  }
  return traces;
}

function* traceCondition(
  condition: Condition | undefined,
  compiled: CompiledCondition,
  run: Run,
): Generator<undefined, ConditionTrace> {
  const { audiences, flags } = run.references;
  // In a malformed rule, no condition has its own compiled form.
  if (compiled === neverHolds || condition === undefined)
    return traceComparison(condition, compiled, run.context);
  if (isAudienceCondition(condition)) {
    const audience = audiences.get(condition.audience) as CompiledAudience;
    return yield* traceAudience(condition.audience, audience, run);
  }
  if (!isRequirement(condition)) return traceComparison(condition, compiled, run.context);
  const required = flags.get(condition.flag) as CompiledFlag;
  return yield* traceRequirement(compileRequirement(condition, required), run);
}

function traceComparison(
  condition: Condition | undefined,
  { holds, obstacle }: CompiledCondition,
  context: EvaluationContext,
): ComparisonTrace {
  const held = holds(context);
  const why = held ? undefined : obstacle(context);
  return { ...labelOfCondition(condition), held, ...(why === undefined ? {} : { obstacle: why }) };
}

function* traceAudience(
  key: string,
  { audience: { match }, isIn, alternatives, isListed }: CompiledAudience,
  run: Run,
): Generator<undefined, AudienceTrace> {
  const { context, pass } = run;
  const held = yield* isIn.inSteps(context, pass);
  const listed = isListed?.(context);
  const trace: AudienceTrace = {
    ...{ audience: key, held },
    ...(listed === undefined ? {} : { listed }),
    alternatives: [],
  };
  if (listed === true) return trace;
  for (const [index, conditions] of alternatives.entries()) {
    run.detailsLeft -= conditions.length;
    if (run.detailsLeft < 0) break;
    const traces: ComparisonTrace[] = [];
    for (const [at, compiled] of conditions.entries()) {
      yield;
      traces.push(traceComparison(match[index]?.[at], compiled, context));
    }
    const matched = traces.every(({ held }) => held);
    trace.alternatives.push({ matched, conditions: traces });
    if (matched) break;
  }
  return trace;
}

function* traceRequirements(
  requirements: readonly CompiledRequirement[] | undefined,
  run: Run,
): Generator<undefined, RequirementTrace[] | undefined> {
  if (requirements === undefined) return undefined;
  const traces: RequirementTrace[] = [];
  for (const requirement of requirements) traces.push(yield* traceRequirement(requirement, run));
  return traces;
}

/** Follows the first unmet requirement of each flag, so that the trace is a chain. */
function* traceRequirement(
  requirement: CompiledRequirement,
  run: Run,
): Generator<undefined, RequirementTrace> {
  const trace = yield* traceOne(requirement, run);
  const because: Link[] = [];
  let link: Link = trace;
  let { required } = requirement;
  while (link.reason === "prerequisite_failed" && run.detailsLeft > 0) {
    const unmet = yield* findUnmet(required, run);
    if (unmet === undefined) break;
    run.detailsLeft -= 1;
    link = yield* traceOne(unmet, run);
    because.push(link);
    ({ required } = unmet);
  }
  return because.length === 0 ? trace : { ...trace, because };
}

type Link = Omit<RequirementTrace, "because">;

function* findUnmet(
  { requirements = [] }: CompiledFlag,
  { context, pass }: Run,
): Generator<undefined, CompiledRequirement | undefined> {
  for (const requirement of requirements) {
    yield* requirement.met.prepare?.(context, pass) ?? [];
    if (!requirement.met.holds(context)) return requirement;
  }
  return undefined;
}

function* traceOne(
  { requirement: { flag, is }, required, met }: CompiledRequirement,
  { context, pass }: Run,
): Generator<undefined, Link> {
  yield;
  const evaluation = yield* lastResultsOf(required).evaluations.inSteps(context, pass);
  yield* met.prepare?.(context, pass) ?? [];
  return {
    flag,
    is: Array.isArray(is) ? [...is] : (is as "on" | "off"),
    held: met.holds(context),
    value: evaluation.outcome.value,
    variation: variationKeyOf(required, evaluation),
    reason: evaluation.outcome.reason,
  };
}

/** Stored data can contain any value in place of a name; only texts are returned. */
function labelOfCondition(condition: Condition | undefined) {
  const { attribute, operator } = (condition ?? {}) as Partial<AttributeCondition>;
  return {
    attribute: typeof attribute === "string" ? attribute : "",
    operator: typeof operator === "string" ? operator : "",
  };
}
