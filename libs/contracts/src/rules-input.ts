import {
  categoryOf,
  expectedValues,
  hasPattern,
  maxPatternLength,
  numberPattern,
  type OperatorCategory,
  operatorNames,
  semverPattern,
} from "@halyard/evaluation";
import { z } from "zod";
import { Condition, TargetingRule } from "./rules.ts";

/**
 * Rules in requests: the value of each condition fits its operator. Responses and messages use `TargetingRules`
 * instead, so that rules that an earlier release stored stay readable.
 */
export const ConditionInput = Condition.meta({ allOf: valuesByOperator() });

export const TargetingRuleInput = TargetingRule.extend({
  conditions: z.array(ConditionInput).max(50),
});

export const TargetingRulesInput = z.array(TargetingRuleInput).max(100);

/** Requirements on rules beyond JSON Schema, for the descriptions of the operations that write rules. */
export const furtherRuleLimits =
  "Some rules match the schema and are rejected with 400. A `matches_regex` pattern is rejected if it is not RE2 syntax, compiles to too large a program, matches no text that is searched, or has more than 500 UTF-16 code units (`maxLength` counts characters). All patterns of a flag together have a maximum size too. A number in a text must fit a double. All rules together are at most 480 KiB as JSON.";

/** Returns one conditional subschema for each kind of value. The descriptions are also error messages. */
function valuesByOperator(): object[] {
  const text = { type: "string" };
  const number = { type: "number" };
  const boolean = { type: "boolean" };
  const operatorsOf = (category: OperatorCategory) =>
    operatorNames.filter((name) => categoryOf(name) === category && !hasPattern(name));
  const byCategory: Record<OperatorCategory, object[]> = {
    string: [text, number, boolean],
    list: [text, { type: "array" }],
    number: [number, { ...text, pattern: numberPattern }, { ...text, format: "date-time" }],
    semver: [{ ...text, pattern: semverPattern }],
  };
  return [
    ...Object.entries(byCategory).map(([category, values]) =>
      valueFor(
        operatorsOf(category as OperatorCategory),
        values,
        expectedValues[category as OperatorCategory],
      ),
    ),
    valueFor(
      operatorNames.filter(hasPattern),
      [{ ...text, maxLength: maxPatternLength }, number, boolean],
      `a regular expression in RE2 syntax of at most ${maxPatternLength} characters`,
    ),
  ];
}

function valueFor(operators: readonly string[], anyOf: object[], expected: string): object {
  return {
    if: { properties: { operator: { enum: operators } }, required: ["operator"] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties: { value: { description: `must be ${expected}`, anyOf } } },
  };
}
