import {
  canMatchCase,
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
import { FlagKey, RuleName } from "./name.ts";
import { loneSurrogate } from "./text-pattern.ts";
import { maxVariations, Serve, ServeInput, VariationKey } from "./values.ts";

/** Text of a rule. PostgreSQL cannot store NUL, and UTF-8 cannot encode a lone surrogate. */
const text = (longest: number) =>
  z
    .string()
    .max(longest)
    .regex(new RegExp(`^[^\\x00${loneSurrogate}]*$`, "u"))
    .describe("must be text without NUL characters or broken Unicode");

/**
 * Maximum size of the rules of one state, as JSON in UTF-8. An event contains two states, before and after the change,
 * and the default size limit of a NATS message is 1 MiB.
 */
export const maxRulesBytes = 480 * 1024;

export const AttributeName = text(200).min(1);
export const BucketSeed = text(128).min(1);

/** From 0 to 100, with at most two decimals. Domain code checks the decimals: `multipleOf` would reject 0.07. */
export const RolloutPercentage = z.number().min(0).max(100);

export const AttributeCondition = z.strictObject({
  attribute: AttributeName,
  operator: z.enum(operatorNames),
  value: z.union([
    text(10_000),
    z.number(),
    z.boolean(),
    z.array(z.union([text(10_000), z.number(), z.boolean()])).max(1_000),
  ]),
  match_case: z
    .boolean()
    .optional()
    .describe(
      "Compares texts exactly. By default, case is ignored. Only for operators of texts and lists",
    ),
});

/** Maximum number of requirements of a state. */
export const maxRequirements = 10;

export const Requirement = z.strictObject({
  flag: FlagKey,
  is: z
    .union([z.enum(["on", "off"]), z.array(VariationKey).min(1).max(maxVariations)])
    .describe(
      "`on` or `off`, or the keys of variations: one of them must be served. A boolean flag has the variations `on` and `off`",
    ),
});
export type Requirement = z.infer<typeof Requirement>;

export const AudienceCondition = z.strictObject({
  audience: FlagKey,
});

/** A comparison is last, because messages about a condition of no kind describe the last one. */
export const Condition = z.union([Requirement, AudienceCondition, AttributeCondition]);
export type Condition = z.infer<typeof Condition>;

/** A targeting rule. This schema checks its shape; libs/evaluation finds all other problems. */
export const TargetingRule = z.strictObject({
  id: text(100).optional(),
  name: text(200).optional(),
  conditions: z.array(Condition).max(50),
  value: z.boolean().optional(),
  rollout_percentage: RolloutPercentage.optional(),
  serve: Serve.optional(),
});
export type TargetingRule = z.infer<typeof TargetingRule>;

export const TargetingRules = z.array(TargetingRule).max(100);

/**
 * Rules in requests: the value of each condition fits its operator. Responses and messages use `TargetingRules`
 * instead, so that rules that an earlier release stored stay readable.
 */
export const AttributeConditionInput = AttributeCondition.meta({ allOf: valuesByOperator() });
export const ConditionInput = z.union([Requirement, AudienceCondition, AttributeConditionInput]);

export const TargetingRuleInput = TargetingRule.extend({
  name: RuleName.optional(),
  conditions: z.array(ConditionInput).max(50),
  serve: ServeInput.optional().describe(
    "What the users of the rule get, for a typed flag. By default that of the state. Not with `value: false`",
  ),
});
export type TargetingRuleInput = z.infer<typeof TargetingRuleInput>;

export const TargetingRulesInput = z.array(TargetingRuleInput).max(100);

/** Requirements on conditions beyond JSON Schema, for the descriptions of the operations that write them. */
export const furtherConditionLimits =
  "A `matches_regex` pattern is rejected if it is not RE2 syntax, compiles to too large a program, matches no text that is searched, or has more than 500 UTF-16 code units (`maxLength` counts characters). A number in a text must fit a double. `match_case` is only allowed with operators of texts and lists, and not with `matches_regex`.";

/** Requirements on rules beyond JSON Schema, for the descriptions of the operations that write rules. */
export const furtherRuleLimits = `Some rules match the schema and are rejected with 400. ${furtherConditionLimits} All patterns of a flag together have a maximum size too. A percentage has at most two decimals. All rules together are at most 480 KiB as JSON.`;

/** Returns one conditional subschema for each kind of value. The descriptions are also error messages. */
function valuesByOperator(): object[] {
  const text = { type: "string" };
  const number = { type: "number" };
  const boolean = { type: "boolean" };
  const operatorsOf = (category: OperatorCategory) =>
    operatorNames.filter((name) => categoryOf(name) === category && !hasPattern(name));
  const withoutCase = operatorNames.filter((name) => !canMatchCase(name));
  const byCategory: Record<OperatorCategory, object[]> = {
    string: [text, number, boolean],
    // The items are checked by `Condition`, which names the wrong one.
    list: [text, { type: "array", items: {} }],
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
    thenFor(withoutCase, {
      match_case: { description: "must be absent for this operator", not: {} },
    }),
  ];
}

function valueFor(operators: readonly string[], anyOf: object[], expected: string): object {
  const value = { description: `must be ${expected}`, ...alternatives(anyOf) };
  return thenFor(operators, { value });
}

function thenFor(operators: readonly string[], properties: object): object {
  return {
    if: { properties: { operator: { enum: operators } }, required: ["operator"] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties },
  };
}

function alternatives(schemas: readonly object[]): object {
  return schemas.length === 1 ? { ...schemas[0] } : { anyOf: schemas };
}
