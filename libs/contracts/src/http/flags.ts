import { z } from "zod";
import { RolloutPercentage, TargetingRules } from "../rules.ts";
import { furtherRuleLimits, TargetingRulesInput } from "../rules-input.ts";
import { Description, Id, IdParam, InstantOut, Name } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Flags of a project, and what each is in an environment. */
export const FlagType = z.enum([
  "release",
  "experiment",
  "operational",
  "kill_switch",
  "permission",
]);
export type FlagType = z.infer<typeof FlagType>;

export const FlagKey = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/)
  .describe(
    "must be 1 to 128 letters, digits, dots, underscores or hyphens, a letter or digit first",
  );

export const Flag = z.strictObject({
  id: Id,
  key: z.string(),
  name: z.string(),
  description: z.string(),
  type: FlagType,
  enabled: z.boolean(),
  rollout_percentage: RolloutPercentage,
  targeting_rules: TargetingRules,
  environment_id: Id,
  version: z.int(),
  created_at: InstantOut,
  updated_at: InstantOut,
  last_evaluated_at: InstantOut.nullable(),
});
export type Flag = z.infer<typeof Flag>;

export const FlagState = z.strictObject({
  flag_id: Id,
  environment_id: Id,
  enabled: z.boolean(),
  rollout_percentage: RolloutPercentage,
  targeting_rules: TargetingRules,
  version: z.int(),
  updated_at: InstantOut,
});
export type FlagState = z.infer<typeof FlagState>;

const stateSettings = {
  enabled: z.boolean().optional(),
  rollout_percentage: RolloutPercentage.optional().describe(
    "How many of the users get the flag: of all of them without rules, else of those of each rule that has no percentage of its own. Raising it takes nobody out",
  ),
  targeting_rules: TargetingRulesInput.optional().describe(
    "In order: the first rule whose conditions all hold decides, and a rule without conditions is for everyone. Without `value: false` its users get the flag, within its percentage; users whom no rule matches do not. `GET /api/v1/operators` says what conditions can ask. All rules together are at most 480 KiB as JSON",
  ),
};

export const CreateFlag = z.strictObject({
  key: FlagKey,
  name: Name,
  description: Description.optional(),
  type: FlagType.optional(),
  ...stateSettings,
});
export type CreateFlag = z.infer<typeof CreateFlag>;

export const UpdateFlag = z.strictObject({
  name: Name.optional(),
  description: Description.optional(),
  type: FlagType.optional(),
  ...stateSettings,
});
export type UpdateFlag = z.infer<typeof UpdateFlag>;

export const UpdateFlagState = z.strictObject(stateSettings);
export type UpdateFlagState = z.infer<typeof UpdateFlagState>;

const rulesExample = [
  {
    name: "20 % of Germany, Austria and Switzerland",
    conditions: [{ attribute: "country", operator: "in" as const, value: ["DE", "AT", "CH"] }],
    rollout_percentage: 20,
  },
  {
    name: "Staff",
    conditions: [{ attribute: "email", operator: "ends_with" as const, value: "@example.com" }],
  },
];

const flags = "/api/v1/flags";
const flag = `${flags}/:id`;
const state = `${flags}/:flagId/environments/:envId`;
const FlagParams = z.strictObject({ id: IdParam });
const StateParams = z.strictObject({ flagId: IdParam, envId: IdParam });
const shared = { service: "management", access: "server_key", tag: "Flags" } as const;

export const createFlag = defineRoute({
  ...shared,
  operationId: "createFlag",
  method: "POST",
  path: flags,
  summary: "Create a flag",
  description: `It exists in every environment of the project at once: disabled, rollout 100, no rules. \`enabled\`, \`rollout_percentage\` and \`targeting_rules\` set it in the key's environment. ${furtherRuleLimits}`,
  body: CreateFlag,
  example: {
    key: "new-checkout",
    name: "New checkout",
    description: "The checkout in one page",
    enabled: true,
    targeting_rules: rulesExample,
  },
  idempotent: true,
  success: { status: 201, description: "The flag", body: Flag },
  errors: ["CONFLICT_001"],
});

export const listFlags = defineRoute({
  ...shared,
  operationId: "listFlags",
  method: "GET",
  path: flags,
  summary: "List the flags of the project, in the order of their keys",
  description:
    "Without `limit`, all flags are sent while they are read. A flag that is created, changed or deleted meanwhile is listed as it is when its part of the list is read; every other flag is listed once. A connection that closes before the end of the body means that the list is incomplete: repeat the request. With `limit`, a page can contain fewer flags where their rules are very long; `next_cursor` says whether there is another page.",
  query: z.strictObject({
    key: z
      .string()
      .optional()
      .describe("Only the flag with this key. The list is empty without one"),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description: "All flags, or a page of them when `limit` is given",
    body: z.strictObject({ flags: z.array(Flag), next_cursor: z.string().nullable().optional() }),
  },
});

export const getFlag = defineRoute({
  ...shared,
  operationId: "getFlag",
  method: "GET",
  path: flag,
  params: FlagParams,
  summary: "Read a flag",
  description:
    "The ETag depends on everything in the answer. `If-Match` compares its version alone, so the ETag of a read can be sent with a change.",
  revalidated: true,
  success: { status: 200, description: "The flag", body: Flag },
});

export const updateFlag = defineRoute({
  ...shared,
  operationId: "updateFlag",
  method: "PATCH",
  alsoMethod: "PUT",
  path: flag,
  params: FlagParams,
  summary: "Change a flag's settings, or its state in the key's environment",
  description: furtherRuleLimits,
  body: UpdateFlag,
  example: { enabled: true, rollout_percentage: 25 },
  conditional: true,
  success: { status: 200, description: "The flag as it is now", body: Flag },
  errors: ["CONFLICT_003"],
});

export const deleteFlag = defineRoute({
  ...shared,
  operationId: "deleteFlag",
  method: "DELETE",
  path: flag,
  params: FlagParams,
  summary: "Delete a flag, in every environment and for good",
  conditional: true,
  success: { status: 204, description: "The flag is gone" },
  errors: ["CONFLICT_003"],
});

export const getFlagState = defineRoute({
  ...shared,
  operationId: "getFlagState",
  method: "GET",
  path: state,
  params: StateParams,
  summary: "Read a flag's state in an environment",
  success: { status: 200, description: "The state", body: FlagState },
});

export const updateFlagState = defineRoute({
  ...shared,
  operationId: "updateFlagState",
  method: "PATCH",
  alsoMethod: "PUT",
  path: state,
  params: StateParams,
  summary: "Change a flag's state in an environment",
  description: furtherRuleLimits,
  body: UpdateFlagState,
  example: { enabled: true, targeting_rules: rulesExample },
  conditional: true,
  success: { status: 200, description: "The state as it is now", body: FlagState },
  errors: ["CONFLICT_003"],
});
