import type {
  AttributeCondition,
  Attributes,
  AttributeValue,
  Condition,
  OperatorName,
  ResolvedState,
  TargetingRule,
} from "../src/index.ts";

export function flagWithRules(...targeting_rules: TargetingRule[]): ResolvedState {
  return { key: "flag", enabled: true, rollout_percentage: 100, targeting_rules };
}

export function flagWithRollout(key: string, rollout_percentage: number): ResolvedState {
  return { key, enabled: true, rollout_percentage, targeting_rules: [] };
}

export function condition(
  attribute: string,
  operator: OperatorName,
  value: AttributeCondition["value"],
): AttributeCondition {
  return { attribute, operator, value };
}

export function oneRuleFlag(...conditions: Condition[]): ResolvedState {
  return flagWithRules({ conditions });
}

export function given(attributes: Record<string, AttributeValue>): Attributes {
  return new Map(Object.entries(attributes));
}
