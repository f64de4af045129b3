import { z } from "zod";
import { RolloutPercentage, TargetingRules } from "../rules.ts";
import { furtherRuleLimits, TargetingRulesInput } from "../rules-input.ts";
import { Description, Id, IdParam, InstantOut, Name } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Flags of a project, and their states by environment. */
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
    "Percentage of users who get the flag. Without rules, it applies to all users; with rules, to the users of each rule without its own percentage. Users who have the flag keep it when the percentage is raised",
  ),
  targeting_rules: TargetingRulesInput.optional().describe(
    "Rules in order of priority. The first rule whose conditions all hold decides; a rule without conditions matches everyone. Its users get the flag, within its percentage, unless the rule has `value: false`. Users that no rule matches do not get it. `GET /api/v1/operators` lists the operators of conditions. All rules together are at most 480 KiB as JSON",
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
  description: `The flag exists in every environment of the project immediately: disabled, rollout 100, no rules. \`enabled\`, \`rollout_percentage\` and \`targeting_rules\` set its state in the key's environment. ${furtherRuleLimits}`,
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
    "Without `limit`, the response contains all flags and is sent while they are read. A flag that is created, changed or deleted meanwhile is listed as it is when its part of the list is read; every other flag is listed once. If the connection closes before the end of the body, the list is incomplete: repeat the request. With `limit`, a page can contain fewer flags if their rules are very long. `next_cursor` is null on the last page.",
  query: z.strictObject({
    key: z
      .string()
      .optional()
      .describe("Lists only the flag with this key. The list is empty if no flag has it"),
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
    "The ETag depends on everything in the response. `If-Match` compares only the version in it, so the ETag of a read can be sent with a change.",
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
  success: { status: 200, description: "The flag after the change", body: Flag },
  errors: ["CONFLICT_003"],
});

export const deleteFlag = defineRoute({
  ...shared,
  operationId: "deleteFlag",
  method: "DELETE",
  path: flag,
  params: FlagParams,
  summary: "Delete a flag permanently, in every environment",
  conditional: true,
  success: { status: 204, description: "The flag no longer exists" },
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
  success: { status: 200, description: "The state after the change", body: FlagState },
  errors: ["CONFLICT_003"],
});
