import { z } from "zod";
import { FlagKey, Name } from "../name.ts";
import { furtherRuleLimits, RolloutPercentage } from "../rules.ts";
import { State, StateSummary, stateInput } from "../state.ts";
import { ValueType, Variations, VariationsInput, variationsByType } from "../values.ts";
import { exampleIds } from "./example-ids.ts";
import { Description, Id, IdParam, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";
import { EvaluationResult, RequirementTrace, RuleTrace, servedTrace } from "./sdk.ts";
import { ContextUser } from "./user-context.ts";

/** Flags of a project, and their states by environment. */
export const FlagType = z.enum([
  "release",
  "experiment",
  "operational",
  "kill_switch",
  "permission",
]);
export type FlagType = z.infer<typeof FlagType>;

export const FlagTag = z
  .string()
  .regex(/^[a-z0-9][a-z0-9._:-]{0,49}$/)
  .describe(
    "must be 1 to 50 lower-case letters, digits, dots, underscores, colons or hyphens, a letter or digit first",
  );

/** Maximum number of tags of a flag. */
export const maxTags = 20;

const TagsInput = z.array(FlagTag).max(maxTags);

export const FlagOwner = Name.max(100).describe(
  "must be one line of text, not blank, without control, bidirectional or zero-width characters",
);
const OwnerInput = FlagOwner.nullable();

export const Flag = z.strictObject({
  id: Id,
  key: z.string(),
  name: z.string(),
  description: z.string(),
  type: FlagType,
  value_type: ValueType.describe("Given at the creation, and never changed"),
  variations: Variations.optional().describe(
    "The values of a typed flag. Lists leave the values out without `include=values`. A boolean flag has the fixed variations `on` and `off`, which are not listed",
  ),
  tags: z.array(z.string()).describe("In alphabetical order, without duplicates"),
  owner: z.string().nullable().describe("The responsible team or person"),
  archived_at: InstantOut.nullable().describe(
    "Null for a flag that is not archived. Archived flags keep their values and can be changed",
  ),
  ...State.shape,
  environment_id: Id,
  version: z.int(),
  created_at: InstantOut,
  updated_at: InstantOut,
  last_evaluated_at: InstantOut.nullable(),
});
export type Flag = z.infer<typeof Flag>;

/** A state as the API returns it. */
export const FlagState = z.strictObject({
  flag_id: Id,
  environment_id: Id,
  ...State.shape,
  version: z.int(),
  updated_at: InstantOut,
});
export type FlagState = z.infer<typeof FlagState>;

/** The state of a flag in one environment without its rules, for lists. */
export const FlagStateSummary = z.strictObject({
  environment_id: Id,
  ...StateSummary.shape,
  rule_count: z.int(),
  version: z.int(),
  updated_at: InstantOut,
});

export const ListedFlag = Flag.extend({
  environments: z
    .array(FlagStateSummary)
    .optional()
    .describe(
      "With `include=environments`: the state in each environment of the project, in the order of their creation. An `environment_only` key sees only its own environment",
    ),
});
export type ListedFlag = z.infer<typeof ListedFlag>;

/** The settings of a flag, which its environments share. */
const settingsInput = {
  name: Name.optional(),
  description: Description.optional(),
  type: FlagType.optional(),
  tags: TagsInput.optional().describe("Replaces the tags"),
  owner: OwnerInput.optional(),
};

const variationsInput = VariationsInput.optional().describe(
  "The values of a typed flag, each with a key that is unique in the flag. A value has the type of the flag, at most 64 KiB as JSON and at most 20 levels; all values together at most 256 KiB. Not for a boolean flag",
);

export const CreateFlag = z
  .strictObject({
    key: FlagKey,
    value_type: ValueType.optional().describe(
      "Type of the values, which never changes. Default: `boolean`. A flag of another type needs `variations`",
    ),
    variations: variationsInput,
    ...settingsInput,
    name: Name,
    ...stateInput,
  })
  .meta({ allOf: variationsByType() });
export type CreateFlag = z.infer<typeof CreateFlag>;

const archivedInput = z
  .boolean()
  .optional()
  .describe("Sets or clears `archived_at`. The values of the flag stay the same");

export const UpdateFlag = z.strictObject({
  ...settingsInput,
  value_type: ValueType.optional().describe(
    "The type of the flag, which never changes. Another type is rejected",
  ),
  variations: variationsInput.describe(
    "Replaces the variations of a typed flag. A variation that a state uses, or that another flag requires, cannot be removed",
  ),
  archived: archivedInput,
  ...stateInput,
});
export type UpdateFlag = z.infer<typeof UpdateFlag>;
export type FlagSettings = Omit<UpdateFlag, keyof State | "value_type" | "variations">;

export const UpdateFlags = z.strictObject({
  flag_ids: z.array(IdParam).min(1).max(200),
  set: z.strictObject({
    archived: archivedInput,
    owner: OwnerInput.optional(),
    add_tags: TagsInput.optional(),
    remove_tags: TagsInput.optional(),
  }),
});
export type UpdateFlags = z.infer<typeof UpdateFlags>;

export const UpdateFlagState = z.strictObject(stateInput);
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

const typedFlagExamples = {
  string: {
    key: "checkout-color",
    name: "Color of the checkout",
    value_type: "string",
    variations: [
      { key: "blue", value: "#0055ff" },
      { key: "red", value: "#cc0000" },
    ],
    enabled: true,
    bucket_by: "company",
    serve: {
      split: [
        { variation: "blue", weight: 50 },
        { variation: "red", weight: 50 },
      ],
    },
  },
  number: {
    key: "search-timeout",
    name: "Timeout of the search in seconds",
    value_type: "number",
    variations: [
      { key: "short", value: 0.5 },
      { key: "long", value: 10 },
    ],
    enabled: true,
    serve: { variation: "long" },
    off_variation: "short",
  },
  object: {
    key: "banner",
    name: "Banner",
    value_type: "object",
    variations: [
      { key: "sale", value: { title: "Sale", colors: ["red", "white"] }, name: "Winter sale" },
      { key: "none", value: {} },
    ],
    targeting_rules: [
      {
        name: "Germany",
        conditions: [{ attribute: "country", operator: "equals" as const, value: "DE" }],
        serve: { variation: "sale" },
      },
    ],
  },
};

/** A state that requires a flag, directly or through other flags. */
export const Dependent = z.strictObject({
  flag_id: Id,
  flag_key: z.string(),
  environment_id: Id,
  environment_name: z.string(),
  enabled: z.boolean(),
  requires: z
    .array(z.string())
    .describe(
      "The path of requirements: the keys of flags from the dependent one to this one, both included",
    ),
  is: z
    .union([z.enum(["on", "off"]), z.array(z.string())])
    .describe("The value that the last flag of the path requires of this one"),
});
export type Dependent = z.infer<typeof Dependent>;

const flagOrders = ["key", "name", "created_at", "updated_at", "last_evaluated_at"] as const;
/** The orders of the list of flags; with a leading `-` descending. */
export const FlagOrder = z.enum([
  ...flagOrders,
  ...flagOrders.map((order) => `-${order}` as const),
]);
export type FlagOrder = z.infer<typeof FlagOrder>;

const flags = "/api/v1/flags";
const flag = `${flags}/:id`;
const state = `${flags}/:flagId/environments/:envId`;
const FlagParams = z.strictObject({ id: IdParam });
const StateParams = z.strictObject({ flagId: IdParam, envId: IdParam });
const shared = { service: "management", access: "server_key", tag: "Flags" } as const;

export const createFlag = defineRoute({
  ...shared,
  operationId: "createFlag",
  protectable: true,
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
  furtherExamples: typedFlagExamples,
  idempotent: true,
  success: { status: 201, description: "The flag", body: Flag },
  errors: ["CONFLICT_001"],
});

export const listFlags = defineRoute({
  ...shared,
  operationId: "listFlags",
  method: "GET",
  path: flags,
  summary: "List the flags of the project",
  description:
    "Without `limit`, the response contains all flags and is sent while they are read. A flag that is created, changed or deleted meanwhile is listed as it is when its part of the list is read; every other flag is listed once. If the connection closes before the end of the body, the list is incomplete: repeat the request. With `limit`, a page can contain fewer flags if their rules are very long. `next_cursor` is null on the last page. A cursor is valid for the query that returned it; only `limit` may differ. Archived flags are listed unless `archived=false` is given. Filters can be combined.",
  query: z.strictObject({
    key: z
      .string()
      .optional()
      .describe("Lists only the flag with this key. The list is empty if no flag has it"),
    include: z
      .enum(["environments", "values", "environments,values", "values,environments"])
      .optional()
      .describe(
        "`environments` adds the state in each environment to each flag, `values` the values of its variations",
      ),
    stale_days: z
      .int()
      .min(1)
      .max(365)
      .optional()
      .describe(
        "Lists only the flags that were created at least this many days ago and that no environment of the project has evaluated since. Flags that other flags require are left out. A request for all flags of an environment evaluates each of them. Evaluations count a few seconds after they were made",
      ),
    tag: z
      .array(FlagTag)
      .max(maxTags)
      .optional()
      .describe("Lists only the flags with this tag. Repeated: with all of these tags"),
    owner: z.string().optional().describe("Lists only the flags of this owner"),
    type: FlagType.optional(),
    archived: z
      .boolean()
      .optional()
      .describe("`false` leaves out archived flags; `true` lists only these"),
    sort: FlagOrder.optional().describe(
      "Descending with a leading `-`. Flags with the same value are in the order of their keys. Names are compared by code points. A flag that was never evaluated counts as evaluated before all others. The default is `key`",
    ),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(2_000).optional(),
  }),
  success: {
    status: 200,
    description: "All flags, or a page of them when `limit` is given",
    body: z.strictObject({
      flags: z.array(ListedFlag),
      next_cursor: z.string().nullable().optional(),
    }),
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
  protectable: true,
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
  errors: ["CONFLICT_001", "CONFLICT_003"],
});

export const updateFlags = defineRoute({
  ...shared,
  operationId: "updateFlags",
  method: "POST",
  path: `${flags}/bulk`,
  summary: "Change the tags, the owner or the archive of several flags",
  description:
    "All flags are changed in one transaction, or none. `add_tags` are added before `remove_tags` are removed. A flag that already has the requested settings stays the same. The response contains the flags in the order of `flag_ids`; a repeated id counts once. An unknown id is rejected with 404 and its JSON pointer. An `environment_only` key cannot use this route.",
  body: UpdateFlags,
  example: {
    flag_ids: [exampleIds.flagId],
    set: { owner: "Team Checkout", add_tags: ["checkout"], remove_tags: ["beta"] },
  },
  success: {
    status: 200,
    description: "The flags after the change",
    body: z.strictObject({ flags: z.array(Flag) }),
  },
});

export const deleteFlag = defineRoute({
  ...shared,
  operationId: "deleteFlag",
  protectable: true,
  method: "DELETE",
  path: flag,
  params: FlagParams,
  summary: "Delete a flag permanently, in every environment",
  description:
    "Cancels the schedules of the flag. SDKs no longer receive it. The audit log keeps its changes. A flag that other flags require cannot be deleted: 409 names them. An `environment_only` key cannot delete flags.",
  conditional: true,
  success: { status: 204, description: "The flag no longer exists" },
  errors: ["CONFLICT_001", "CONFLICT_003"],
});

export const getDependents = defineRoute({
  ...shared,
  operationId: "getDependents",
  method: "GET",
  path: `${flag}/dependents`,
  params: FlagParams,
  summary: "List the flags that require a flag, directly or through others",
  description:
    "In every environment of the project; an `environment_only` key sees only its own. A flag requires another one in `requires` or in a condition of a rule.",
  success: {
    status: 200,
    description: "The dependents, those with the shortest paths first: at most 1,000",
    body: z.strictObject({
      dependents: z.array(Dependent),
      total: z.int().describe("Number of all dependents"),
    }),
  },
});

export const getFlagState = defineRoute({
  ...shared,
  operationId: "getFlagState",
  method: "GET",
  path: state,
  params: StateParams,
  summary: "Read a flag's state in an environment",
  description: "The `version` of a state is that of the flag at the last change of this state.",
  success: { status: 200, description: "The state", body: FlagState },
});

export const updateFlagState = defineRoute({
  ...shared,
  operationId: "updateFlagState",
  protectable: true,
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
  errors: ["CONFLICT_001", "CONFLICT_003"],
});

export const ExplainFlag = z.strictObject({
  user: ContextUser.optional().describe(
    "The user, as in the body of `POST /api/v1/sdk/evaluate`. Its `id` overrides its `attributes`, and these override its other members",
  ),
  state: UpdateFlagState.optional().describe(
    "Settings to try in place of the stored ones. They are not stored",
  ),
});
export type ExplainFlag = z.infer<typeof ExplainFlag>;

export const FlagExplanation = EvaluationResult.omit({ key: true, trace: true }).extend({
  trace: z.strictObject({
    enabled: z.boolean(),
    rollout_percentage: RolloutPercentage,
    requires: z
      .array(RequirementTrace)
      .optional()
      .describe("The requirements of the flag, while it is enabled and has some"),
    rules: z.array(RuleTrace).describe("Each rule, in order of priority"),
    split: z
      .strictObject({
        percentage: RolloutPercentage,
        bucket: z
          .int()
          .min(0)
          .max(9_999)
          .nullable()
          .describe(
            "Bucket of the user in the flag, by `bucket_by` and `bucket_seed`. Null for a user without the attribute",
          ),
      })
      .optional()
      .describe(
        "The percentage that decided. It includes the user if the bucket is below 100 times the percentage. Only with the reason `split`",
      ),
    ...servedTrace,
  }),
});
export type FlagExplanation = z.infer<typeof FlagExplanation>;

export const explainFlag = defineRoute({
  ...shared,
  operationId: "explainFlag",
  method: "POST",
  path: `${state}/explain`,
  params: StateParams,
  summary: "Explain the value of a flag for a user",
  description: `For trying out a flag, including settings that are not saved yet. The user is not stored or logged, and the request does not count towards the monthly limit. The response names attributes, but does not contain their values. ${furtherRuleLimits}`,
  body: ExplainFlag,
  example: {
    user: { id: "user-42", attributes: { country: "DE", plan: "pro" } },
    state: { enabled: true, targeting_rules: rulesExample },
  },
  success: { status: 200, description: "The value and its trace", body: FlagExplanation },
  errors: ["CONFLICT_001"],
});
