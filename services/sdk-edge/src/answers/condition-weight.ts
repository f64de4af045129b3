import { type Condition, categoryOf, hasPattern, isAttributeCondition } from "@halyard/evaluation";

/** Worst-case cost of a condition with a regular expression, in other conditions. */
const expressionWeight = 500;

/** Number of items in a list whose first lookup costs as much as a condition at worst. */
const itemsPerWeight = 32;

/** A text with commas can be a list, whose items take two characters at least. */
const charactersPerWeight = 2 * itemsPerWeight;

/**
 * Returns the cost of evaluating conditions at worst. A reference counts as one, because the audience or flag is
 * evaluated once for all flags.
 */
export function weightOfConditions(conditions: readonly Condition[]): number {
  let weight = 0;
  for (const condition of conditions) {
    if (!isAttributeCondition(condition)) {
      weight += 1;
      continue;
    }
    const { operator, value } = condition;
    weight += hasPattern(operator) ? expressionWeight : 1;
    if (categoryOf(operator) !== "list") continue;
    if (Array.isArray(value)) weight += Math.floor(value.length / itemsPerWeight);
    else if (typeof value === "string") weight += Math.floor(value.length / charactersPerWeight);
  }
  return weight;
}
