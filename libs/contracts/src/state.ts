import type { State as EvaluatedState } from "@halyard/evaluation";
import { z } from "zod";
import {
  AttributeName,
  BucketSeed,
  maxRequirements,
  Requirement,
  RolloutPercentage,
  TargetingRules,
  TargetingRulesInput,
} from "./rules.ts";
import { Serve, ServeInput, VariationKey } from "./values.ts";

/**
 * The state of a flag in one environment: everything that the flag says there. Routes, events, snapshot entries, rule
 * sets and the tables of management contain it whole. A member that is added to the type of the evaluator does not
 * compile until it is added here.
 */
export const State = z.object({
  enabled: z.boolean(),
  rollout_percentage: RolloutPercentage,
  targeting_rules: TargetingRules,
  bucket_by: AttributeName.optional(),
  bucket_seed: BucketSeed.optional(),
  serve: Serve.optional(),
  off_variation: VariationKey.nullable().optional(),
  requires: z.array(Requirement).max(maxRequirements).optional(),
} satisfies Members);
export type State = z.infer<typeof State>;

type Members = { [Member in keyof Required<EvaluatedState>]: z.ZodType };

/** The members in requests. A request changes those that it contains. */
export const stateInput = {
  enabled: z.boolean().optional(),
  rollout_percentage: RolloutPercentage.optional().describe(
    "Percentage of users who get the flag, with at most two decimals. Without rules, it applies to all users; with rules, to the users of each rule without its own percentage. Users who have the flag keep it when the percentage is raised",
  ),
  targeting_rules: TargetingRulesInput.optional().describe(
    "Rules in order of priority. The first rule whose conditions all hold decides; a rule without conditions matches everyone. Its users get the flag, within its percentage, unless the rule has `value: false`. Users that no rule matches do not get it. A condition compares an attribute, names an audience of the project, or requires another flag. `GET /api/v1/operators` lists the operators of comparisons. The rules, with `serve` and `requires`, are at most 480 KiB as JSON. The plan also limits the size of all rules of the organization: a change that exceeds it is rejected with 429",
  ),
  bucket_by: AttributeName.nullable()
    .optional()
    .describe(
      "Attribute whose value selects the bucket for percentages, such as `company`: all users with the same value are inside a percentage, or all are outside. Null, the default, and the names of the id: the user's id. Users without the attribute are outside every percentage below 100",
    ),
  bucket_seed: BucketSeed.nullable()
    .optional()
    .describe(
      "Text in place of the flag's key in the hash of buckets. Flags with the same seed and attribute select the same users. Null, the default: the flag's key",
    ),
  serve: ServeInput.optional().describe(
    "What users get when a typed flag is on for them: one variation, or a split by weights that add up to 100. A split moves as few users as possible; `ranges` of all its members set the buckets explicitly. By default the first variation",
  ),
  off_variation: VariationKey.nullable()
    .optional()
    .describe(
      "Key of the variation that all other users of a typed flag get. Null: the default of the application. By default the last variation, and null for a flag with one variation",
    ),
  requires: z
    .array(Requirement)
    .max(maxRequirements)
    .optional()
    .describe(
      "Other flags of the project that must have these values for the same user in the same environment. Otherwise the flag is off, with the reason `prerequisite_failed`. Conditions of rules can require flags too. A circle of requirements is rejected, and a chain of more than 10. An empty list removes all",
    ),
} satisfies Members;

/** The members of a state without the rules, which can be large, for lists. */
export const StateSummary = State.omit({ targeting_rules: true });
export type StateSummary = z.infer<typeof StateSummary>;

/** Names of the members, in the order of the schema. */
export const stateMembers = Object.keys(State.shape) as (keyof State)[];
const reorder = compileOrder(State);

/**
 * Returns the state in a value that may have further members. Its members, and theirs, are in the order of the schema,
 * which PostgreSQL's `jsonb` does not preserve.
 */
export const stateOf = <T extends Partial<State>>(value: T): Pick<T, keyof T & keyof State> =>
  reorder(value) as Pick<T, keyof T & keyof State>;

/** Returns a function that writes the members of a value in the order of the first option that has one of them. */
function compileOrderOfUnion(union: z.ZodUnion): (value: unknown) => unknown {
  const options = union.options
    .filter((option) => option instanceof z.ZodObject)
    .map((option) => ({ names: Object.keys(option.shape), reorder: compileOrder(option) }));
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    const option = options.find(({ names }) => names.some((name) => name in value));
    return option === undefined ? value : option.reorder(value);
  };
}

/**
 * Returns a function that writes the members of objects in the order of a schema, at any depth, and leaves out members
 * that the schema lacks.
 */
export function compileOrder(schema: unknown): (value: unknown) => unknown {
  if (schema instanceof z.ZodUnion) return compileOrderOfUnion(schema);
  if (schema instanceof z.ZodOptional) return compileOrder(schema.unwrap());
  if (schema instanceof z.ZodArray) {
    const reorder = compileOrder(schema.element);
    return (value) => (Array.isArray(value) ? value.map(reorder) : value);
  }
  if (!(schema instanceof z.ZodObject)) return (value) => value;
  const members = Object.entries(schema.shape).map(([name, member]) => ({
    name,
    reorder: compileOrder(member),
  }));
  return (value) => {
    if (typeof value !== "object" || value === null) return value;
    const given = value as Record<string, unknown>;
    const present = members.filter(({ name }) => name in given);
    return Object.fromEntries(present.map(({ name, reorder }) => [name, reorder(given[name])]));
  };
}
