import { operatorNames } from "@halyard/evaluation";
import { z } from "zod";

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
export const maxRulesBytes = 480 * 1024;

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

/** A targeting rule. Only its shape is checked here; libs/evaluation finds other problems and evaluates it. */
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

const ruleMembers = Object.keys(TargetingRule.shape);
const conditionMembers = Object.keys(Condition.shape);

/** Returns rules with their members in the order of the schema; PostgreSQL's `jsonb` keeps another order. */
export function inSchemaOrder(rules: readonly TargetingRule[]): TargetingRule[] {
  return rules.map((rule) => {
    const conditions = rule.conditions.map((condition) => pick(condition, conditionMembers));
    return pick({ ...rule, conditions }, ruleMembers);
  });
}

function pick<T extends object>(value: T, members: readonly string[]): T {
  const present = members.filter((member) => member in value);
  return Object.fromEntries(present.map((member) => [member, value[member as keyof T]])) as T;
}
