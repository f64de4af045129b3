import { operatorNames } from "@halyard/evaluation";
import { z } from "zod";

/** Text of a rule. PostgreSQL cannot store NUL, and UTF-8 cannot encode a lone surrogate. */
const text = (longest: number) =>
  z
    .string()
    .max(longest)
    .regex(/^[^\0\p{Cs}]*$/u)
    .describe("must be text without NUL characters or broken Unicode");

/**
 * Maximum size of the rules of one state, as JSON in UTF-8. An event contains two states, before and after the change,
 * and the default size limit of a NATS message is 1 MiB.
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

/** A targeting rule. This schema checks its shape; libs/evaluation finds all other problems. */
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
