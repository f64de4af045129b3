import type { Pick } from "./compile-serve.ts";
import type { EvaluationContext } from "./context.ts";
import type { Audience, Requirement, ResolvedState } from "./flag-state.ts";
import type { LastResult, Pass } from "./last-result.ts";
import type { Obstacle } from "./operators/operator.ts";
import type { Outcome } from "./outcome.ts";
import type { Rollout } from "./rollout.ts";

/**
 * The compiled forms. They contain one another, because a condition can refer to a flag, whose rules have conditions. So
 * their types are here, and each file that compiles one of them imports the others from here.
 */

export type CompiledFlag = {
  readonly key: string;
  readonly state: ResolvedState;
  /** The outcome, if it is the same for every context. `evaluate` returns it too. */
  readonly constant: Outcome | undefined;
  readonly evaluate: Evaluate;
  /**
   * All rules of the state, for `explain`, also those that the plan omits. None while the flag is disabled or lacks a
   * reference.
   */
  readonly rules: readonly CompiledRule[];
  /** The parts of `evaluate`, which `compileAll` combines with the plans of other flags. */
  readonly plan: Plan;
  /**
   * Returns the index of the variation for a context. Callers that have the outcome pass it. Undefined for boolean flags.
   */
  readonly variationOf: VariationOf | undefined;
  /** The parts of `variationOf`. Undefined for boolean flags. */
  readonly served: Served | undefined;
  /** The requirements of the state. Undefined without any, and while the flag is disabled or lacks a reference. */
  readonly requirements: readonly CompiledRequirement[] | undefined;
};

export type VariationOf = (context: EvaluationContext, outcome?: Outcome) => number;

export type Evaluate = (context: EvaluationContext) => Outcome;

/** The variations of a typed flag. */
export type Served = {
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

export type CompiledRule = {
  readonly conditions: readonly CompiledCondition[];
  /** Returns whether all conditions hold. */
  readonly matches: (context: EvaluationContext) => boolean;
  /** The result for matching users: one outcome for all, or a rollout that decides by bucket. */
  readonly result: Outcome | Rollout;
  /** The variation for users who are in, if the rule has its own. Undefined for boolean flags. */
  readonly pick: Pick | undefined;
};

export type CompiledCondition = {
  /** False if the condition cannot hold for any context. */
  readonly canHold: boolean;
  /** True if the condition holds for every context. */
  readonly alwaysHolds?: boolean;
  readonly holds: (context: EvaluationContext) => boolean;
  /**
   * Identity of the condition: two conditions with the same text hold for the same users. Undefined if the text would
   * be too long to be worth comparing.
   */
  readonly sameAs: string | undefined;
  /** Returns the reason why the condition cannot be evaluated, or undefined. */
  readonly obstacle: (context: EvaluationContext) => Obstacle | undefined;
  /** Set if `holds` may take long: evaluates in steps, so that the next call of `holds` has the result. */
  readonly prepare?: (context: EvaluationContext, pass: Pass) => Generator<undefined>;
};

/** A requirement that is ready to be evaluated. */
export type CompiledRequirement = {
  readonly requirement: Requirement;
  readonly required: CompiledFlag;
  /** True or false if the result is the same for every context. */
  readonly constant: boolean | undefined;
  /** Holds if it is met. */
  readonly met: CompiledCondition;
  readonly unmet: CompiledCondition;
};

/** An audience that is ready to be evaluated. */
export type CompiledAudience = {
  readonly audience: Audience;
  /** The condition of rules that refer to the audience. */
  readonly condition: CompiledCondition;
  /** Returns whether a user is in the audience. All flags share one evaluation for a context. */
  readonly isIn: LastResult<boolean>;
  /** The alternatives of `match`. */
  readonly alternatives: readonly (readonly CompiledCondition[])[];
  /** Returns whether a user is in the list. Undefined without a list. */
  readonly isListed: ((context: EvaluationContext) => boolean) | undefined;
};

/** The audiences and flags that a flag refers to, by their keys. */
export type References = {
  readonly audiences: ReadonlyMap<string, CompiledAudience>;
  readonly flags: ReadonlyMap<string, CompiledFlag>;
};

/** An outcome, and the index of the variation of a typed flag. */
export type Evaluation = { readonly outcome: Outcome; readonly variation: number | undefined };
