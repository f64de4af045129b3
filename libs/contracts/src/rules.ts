import {
  categoryOf,
  expectedValues,
  longestPattern,
  numberPattern,
  type OperatorCategory,
  operatorNames,
  semverPattern,
} from "@halyard/evaluation";
import { z } from "zod";

/**
 * What the rollout and the targeting rules of a flag look like. Conditions are evaluated by the SDK
 * edge; here only their shape is fixed.
 */
/** PostgreSQL keeps no NUL and UTF-8 no half of a surrogate pair, so no text of a rule may hold them. */
const text = (longest: number) =>
  z
    .string()
    .max(longest)
    .regex(/^[^\0\p{Cs}]*$/u)
    .describe("must be text without NUL characters or broken Unicode");

/**
 * How large the rules of one state may be, as JSON in UTF-8. An event carries two states, before and
 * after, and a NATS server takes messages of 1 MiB unless it is told otherwise.
 */
export const longestRulesBytes = 480 * 1024;

export const Condition = z.strictObject({
  attribute: text(200).min(1),
  operator: z.enum(operatorNames),
  value: z.union([
    text(10_000),
    z.number(),
    z.boolean(),
    z.array(z.union([text(10_000), z.number(), z.boolean()])).max(1_000),
  ]),
});

export const TargetingRule = z.strictObject({
  id: text(100).optional(),
  name: text(200).optional(),
  conditions: z.array(Condition).max(50),
  value: z.boolean().optional(),
  rollout_percentage: z.int().min(0).max(100).optional(),
});
export type TargetingRule = z.infer<typeof TargetingRule>;

export const TargetingRules = z.array(TargetingRule).max(100);
export const RolloutPercentage = z.int().min(0).max(100);

/**
 * Rules as requests write them: each condition has a value that its operator compares with. Answers and messages use
 * `TargetingRules`, because rules that an earlier release stored can be read.
 */
export const ConditionInput = Condition.meta({ allOf: valuesByOperator() });

export const TargetingRuleInput = TargetingRule.extend({
  conditions: z.array(ConditionInput).max(50),
});

export const TargetingRulesInput = z.array(TargetingRuleInput).max(100);

/** What JSON Schema cannot say about rules, for the descriptions of the operations that write them. */
export const furtherRuleLimits =
  "Beyond the schema, rules are refused with 400 when a `matches_regex` pattern is not RE2 syntax or compiles to too large a program, when all patterns of the flag together are too large, when a number in a text is larger than a double can hold, and when all rules together are over 480 KiB as JSON.";

/** One conditional subschema for each kind of value. The descriptions are error messages too. */
function valuesByOperator(): object[] {
  const text = { type: "string" };
  const number = { type: "number" };
  const boolean = { type: "boolean" };
  const operatorsOf = (category: OperatorCategory) =>
    operatorNames.filter((name) => categoryOf(name) === category && name !== "matches_regex");
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
      ["matches_regex"],
      [{ ...text, maxLength: longestPattern }, number, boolean],
      `a regular expression in RE2 syntax of at most ${longestPattern} characters`,
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
