import type { Scalar } from "./attributes.ts";
import type { OperatorName } from "./operators/catalogue.ts";

/**
 * A flag as it is set in one environment, in the words of the public API, so that what is stored and
 * sent can be evaluated as it stands.
 */
export type FlagState = {
  key: string;
  enabled: boolean;
  /** Whole percent, 0 to 100. */
  rollout_percentage: number;
  targeting_rules: readonly TargetingRule[];
};

/** The first rule whose conditions all hold decides. A rule without conditions is for everyone. */
export type TargetingRule = {
  id?: string | undefined;
  name?: string | undefined;
  conditions: readonly Condition[];
  /** What the rule's users get; true when absent. */
  value?: boolean | undefined;
  /** Whole percent, 0 to 100; the flag's own when absent. */
  rollout_percentage?: number | undefined;
};

export type Condition = {
  attribute: string;
  operator: OperatorName;
  value: Scalar | readonly Scalar[];
};
