import type { Scalar } from "./attributes.ts";
import type { OperatorName } from "./operators/catalogue.ts";

/**
 * The state of a flag in one environment. The names of the members are those of the public API, so that stored and
 * published states can be evaluated without conversion. The schema in `libs/contracts` has the same members.
 */
export type State = {
  enabled: boolean;
  /** An integer from 0 to 100. */
  rollout_percentage: number;
  targeting_rules: readonly TargetingRule[];
};

/** A state resolved for the evaluator: with everything that the evaluation needs beyond the state. */
export type ResolvedState = State & { key: string };

/** The first rule whose conditions all hold decides. A rule without conditions matches every user. */
export type TargetingRule = {
  id?: string | undefined;
  name?: string | undefined;
  conditions: readonly Condition[];
  /** The value for matching users. Default: true. */
  value?: boolean | undefined;
  /** An integer from 0 to 100. Default: the percentage of the flag. */
  rollout_percentage?: number | undefined;
};

export type Condition = {
  attribute: string;
  operator: OperatorName;
  value: Scalar | readonly Scalar[];
};
