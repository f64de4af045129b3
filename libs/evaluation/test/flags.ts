import type {
  Attributes,
  AttributeValue,
  Condition,
  FlagState,
  OperatorName,
  TargetingRule,
} from "../src/index.ts";

export function flagWithRules(...targeting_rules: TargetingRule[]): FlagState {
  return { key: "flag", enabled: true, rollout_percentage: 100, targeting_rules };
}

export function flagWithRollout(key: string, rollout_percentage: number): FlagState {
  return { key, enabled: true, rollout_percentage, targeting_rules: [] };
}

export function condition(
  attribute: string,
  operator: OperatorName,
  value: Condition["value"],
): Condition {
  return { attribute, operator, value };
}

export function oneRuleFlag(...conditions: Condition[]): FlagState {
  return flagWithRules({ conditions });
}

export function given(attributes: Record<string, AttributeValue>): Attributes {
  return new Map(Object.entries(attributes));
}
