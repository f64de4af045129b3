import { z } from "zod";
import { AudienceList, Match } from "../audiences.ts";
import { readerFields } from "../readers.ts";
import { Requirement, RolloutPercentage } from "../rules.ts";
import { State } from "../state.ts";
import { maxVariations, Serve, TypedValue, ValueType, VariationKey } from "../values.ts";
import { InstantIn, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";
import { UserContext } from "./user-context.ts";

/** Endpoints of the edge for SDKs. They return the values in the environment of the API key. */
export const FlagValues = z.strictObject({ flags: z.record(z.string(), z.boolean()) });
export type FlagValues = z.infer<typeof FlagValues>;

/** The result of a comparison. It never contains the user's values. */
export const ComparisonTrace = z.strictObject({
  attribute: z.string(),
  operator: z.string(),
  held: z.boolean(),
  obstacle: z
    .string()
    .optional()
    .describe(
      "Why the condition could not be evaluated, such as `attribute_missing`. Absent after a comparison",
    ),
});

export const AudienceTrace = z.strictObject({
  audience: z.string(),
  held: z.boolean(),
  listed: z
    .boolean()
    .optional()
    .describe("Whether the user is in the list. Absent for an audience without one"),
  alternatives: z
    .array(z.strictObject({ matched: z.boolean(), conditions: z.array(ComparisonTrace) }))
    .describe("The alternatives up to the first that matches; none for a user in the list"),
  changed_at: InstantOut.optional().describe(
    "Time of the last change of the audience, in `POST …/explain`",
  ),
});

/** The result of a requirement. */
const OneRequirementTrace = z.strictObject({
  ...Requirement.shape,
  held: z.boolean(),
  value: z.boolean().describe("The value of the required flag: on or off"),
  variation: z.string().nullable().describe("The variation that the required flag serves"),
  reason: z.string(),
});

export const RequirementTrace = OneRequirementTrace.extend({
  because: z
    .array(OneRequirementTrace)
    .optional()
    .describe(
      "The chain of unmet requirements of the required flag, if they decide: each flag requires the next one",
    ),
});

export const ConditionTrace = z.union([RequirementTrace, AudienceTrace, ComparisonTrace]);

export const RuleTrace = z.strictObject({
  index: z.int(),
  id: z.string().optional(),
  name: z.string().optional(),
  reached: z.boolean().describe("False if an earlier rule decided"),
  matched: z.boolean(),
  conditions: z.array(ConditionTrace),
  inside_percentage: z
    .boolean()
    .optional()
    .describe(
      "True if the user is within the percentage. Only on a rule that decided by a percentage",
    ),
});

/** The serve of a typed flag, in a trace. */
export const servedTrace = {
  serve: Serve.optional().describe(
    "What the user gets, with the ranges of buckets of a split. Only for a typed flag that is on for the user, or whose split needs an attribute that the user lacks",
  ),
  bucket: z
    .int()
    .min(0)
    .max(9_999)
    .nullable()
    .optional()
    .describe("Bucket of the user in the split. Null for a user without the attribute"),
};

export const EvaluationResult = z.strictObject({
  key: z.string(),
  value: z
    .union([z.boolean(), TypedValue])
    .nullable()
    .describe("In the type of the flag. Null: the default of the application"),
  variation: z.string().nullable(),
  reason: z.enum([
    "static",
    "split",
    "targeting_match",
    "default",
    "disabled",
    "prerequisite_failed",
  ]),
  trace: z
    .strictObject({
      enabled: z.boolean(),
      rollout_percentage: RolloutPercentage,
      requires: z
        .array(RequirementTrace)
        .optional()
        .describe("The requirements of the flag, while it is enabled and has some"),
      rules: z.array(RuleTrace),
      ...servedTrace,
    })
    .optional()
    .describe("With `explain=true`: the evaluation of each rule"),
});
export type EvaluationResult = z.infer<typeof EvaluationResult>;

/** The values of all flags, in their types. */
export const TypedValues = z.strictObject({
  values: z
    .record(
      z.string(),
      z.strictObject({
        value: z.union([z.boolean(), TypedValue]).nullable(),
        variation: z.string().nullable(),
      }),
    )
    .describe("By key of the flag. Null: the default of the application"),
});
export type TypedValues = z.infer<typeof TypedValues>;

/** The settings of all flags in an environment, from which an SDK evaluates them in the application. */
export const Ruleset = z.strictObject({
  format: z.literal(2),
  project_id: z.uuid(),
  environment_id: z.uuid(),
  flags: z
    .record(
      z.string(),
      z.strictObject({
        value_type: ValueType.optional().describe("Absent for a boolean flag"),
        variations: z.array(z.strictObject({ key: z.string(), value: TypedValue })).optional(),
        ...State.shape,
        needs: z
          .array(z.string())
          .optional()
          .describe(
            "Features that an evaluator must support. A flag with an unknown feature, or with an unknown operator, counts as not found",
          ),
        version: z.int().min(1),
      }),
    )
    .describe("By key of the flag"),
  audiences: z
    .record(z.string(), z.strictObject({ match: Match, list: AudienceList.optional() }))
    .optional()
    .describe(
      "The audiences that flags use, by key. `GET /api/v1/sdk/lists/{sha256}` returns a chunk of a list",
    ),
});
export type Ruleset = z.infer<typeof Ruleset>;

const shared = {
  service: "sdk-edge",
  access: "any_key",
  tag: "SDK",
  readsUser: true,
} as const;
const flagsPath = "/api/v1/sdk/flags";
const valuesPath = "/api/v1/sdk/values";
const evaluatePath = "/api/v1/sdk/evaluate";
const UserQuery = z.looseObject({ user_id: z.string().optional() });
const StreamQuery = z.looseObject({
  user_id: z.string().optional(),
  values: z
    .boolean()
    .optional()
    .describe("True: events `values` with the values in their types, instead of events `flags`"),
});
const EvaluateQuery = z.looseObject({
  key: z.string().describe("Key of the flag"),
  user_id: z.string().optional(),
  explain: z.boolean().optional(),
});

const flagsAnswer = {
  status: 200,
  description: "The values of all flags. If `If-None-Match` contains their ETag, the status is 304",
  body: FlagValues,
} as const;

const valuesAnswer = {
  status: 200,
  description: "The values of all flags. If `If-None-Match` contains their ETag, the status is 304",
  body: TypedValues,
} as const;

const bodyOnGet =
  "A body is read as with `POST`. Prefer `POST`, because proxies can drop the body of a `GET`.";

export const sdkGetFlags = defineRoute({
  ...shared,
  operationId: "sdkGetFlags",
  method: "GET",
  path: flagsPath,
  query: UserQuery,
  summary: "Evaluate all flags",
  description: bodyOnGet,
  revalidated: true,
  success: flagsAnswer,
  errors: ["VALIDATION_003"],
});

export const sdkPostFlags = defineRoute({
  ...shared,
  operationId: "sdkPostFlags",
  method: "POST",
  path: flagsPath,
  query: UserQuery,
  summary: "Evaluate all flags, with the user's context in the body",
  description:
    "The same as `GET`, for a user with more attributes than headers can carry. Without a body, the user has no attributes.",
  body: UserContext,
  example: { user_id: "user-42", country: "DE", plan: "pro" },
  bodyOptional: true,
  revalidated: true,
  success: flagsAnswer,
});

export const sdkGetValues = defineRoute({
  ...shared,
  operationId: "sdkGetValues",
  method: "GET",
  path: valuesPath,
  query: UserQuery,
  summary: "Get the values of all flags in their types",
  description: `A boolean flag has the value true with the variation \`on\`, or false with \`off\`. Where value and variation are null, the application uses its own default. Numbers and objects have the text that was sent when the variation was saved. ${bodyOnGet}`,
  revalidated: true,
  success: valuesAnswer,
  errors: ["VALIDATION_003"],
});

export const sdkPostValues = defineRoute({
  ...shared,
  operationId: "sdkPostValues",
  method: "POST",
  path: valuesPath,
  query: UserQuery,
  summary: "Get the values of all flags in their types, with the user's context in the body",
  description:
    "The same as `GET`, for a user with more attributes than headers can carry. Without a body, the user has no attributes.",
  body: UserContext,
  example: { user_id: "user-42", country: "DE", company: "acme" },
  bodyOptional: true,
  revalidated: true,
  success: valuesAnswer,
});

const explaining =
  "With `explain=true` and a reader or server key, the response also contains the result of each rule and condition.";

const evaluateAnswer = {
  status: 200,
  description: "The value and its reason",
  body: EvaluationResult,
} as const;

export const sdkGetEvaluate = defineRoute({
  ...shared,
  operationId: "sdkGetEvaluate",
  method: "GET",
  path: evaluatePath,
  query: EvaluateQuery,
  summary: "Evaluate one flag",
  description: `${explaining} ${bodyOnGet}`,
  success: evaluateAnswer,
  errors: ["AUTH_002", "VALIDATION_003"],
});

export const sdkPostEvaluate = defineRoute({
  ...shared,
  operationId: "sdkPostEvaluate",
  method: "POST",
  path: evaluatePath,
  query: EvaluateQuery,
  summary: "Evaluate one flag, with the user's context in the body",
  description: explaining,
  body: UserContext,
  example: { user: { id: "user-42", attributes: { country: "DE", plan: "pro" } } },
  bodyOptional: true,
  success: evaluateAnswer,
  errors: ["AUTH_002"],
});

export const sdkStream = defineRoute({
  ...shared,
  operationId: "sdkStream",
  method: "GET",
  path: "/api/v1/sdk/stream",
  query: StreamQuery,
  summary: "Stream the values of all flags as they change",
  description:
    "Server-sent events. The first `flags` event has all values for the user. Later ones have the changed values, and `removed` with the flags that no longer exist. `heartbeat` is sent at the start and every 15 seconds. `id` is the ETag of all values. After a reconnection with the current `id` as `Last-Event-ID`, no full event is sent. With `values=true`, the events are named `values` and have the members of `GET /api/v1/sdk/values`.",
  success: {
    status: 200,
    description: "Events `flags` or `values`, and `heartbeat`",
    contentType: "text/event-stream",
  },
  errors: ["SERVER_002"],
});

const rulesForServers = {
  service: "sdk-edge",
  access: "server_or_reader_key",
  tag: "SDK",
  method: "GET",
} as const;

const neverOlder =
  "An edge that may be behind the client waits for the missing change for up to one second, then returns 503.";

const RulesetQuery = z.looseObject({
  format: z.literal(2).describe("The format of the rule set. SDKs of release 0.1 do not send it"),
});

export const sdkRuleset = defineRoute({
  ...rulesForServers,
  operationId: "sdkRuleset",
  path: "/api/v1/sdk/ruleset",
  query: RulesetQuery,
  summary: "Get the rules of all flags",
  description: `For SDKs that evaluate flags in the application. Compressed with \`gzip\` for clients that accept it; the ETag is the same. ${neverOlder}`,
  revalidated: true,
  compressed: true,
  cacheControl: "no-store",
  success: {
    status: 200,
    description: "The rule set. If `If-None-Match` contains its ETag, the status is 304",
    body: Ruleset,
  },
  errors: ["VALIDATION_003"],
});

export const sdkRulesetStream = defineRoute({
  ...rulesForServers,
  operationId: "sdkRulesetStream",
  path: "/api/v1/sdk/ruleset/stream",
  query: RulesetQuery,
  summary: "Stream the rules of all flags as they change",
  description: `Server-sent events. The first \`ruleset\` event has the rules of all flags and \`"full":true\`. Later ones have the changed flags, and \`removed\` with the keys of flags that no longer exist. \`audiences\` has those that changed or are used for the first time, and \`removed_audiences\` the keys of those that no flag uses any longer; a flag whose audience changed is not sent again. \`heartbeat\` is sent at the start and every 3 seconds, and its \`interval\` is that time in seconds. \`id\` is the ETag of the rule set. After a reconnection with a recent \`id\` as \`Last-Event-ID\`, the first event has only what changed since; with the current one, there is none. ${neverOlder}`,
  success: {
    status: 200,
    description: "Events `ruleset` and `heartbeat`",
    contentType: "text/event-stream",
  },
});

export const sdkList = defineRoute({
  ...rulesForServers,
  operationId: "sdkList",
  path: "/api/v1/sdk/lists/:sha256",
  params: z.strictObject({ sha256: z.string().regex(/^[0-9a-f]{64}$/) }),
  summary: "Get a chunk of the list of an audience",
  description:
    "The fingerprints of entries: 8 bytes each, big-endian, in ascending order. The rule set names the chunks by their SHA-256, and contains the key of the fingerprints. A chunk never changes. Only chunks of audiences that flags of the environment use are found. The request does not count as a request of the month.",
  cacheControl: "private, max-age=31536000, immutable",
  success: { status: 200, description: "The chunk", contentType: "application/octet-stream" },
  errors: ["NOT_FOUND_001", "VALIDATION_003"],
});

const Evaluations = z.int().min(0);
const EvaluationsOfValue = Evaluations.optional().describe(
  "Number of evaluations of a boolean flag with this value; 0 by default",
);

export const UsageReport = z.strictObject({
  period: z
    .strictObject({ start: InstantIn, end: InstantIn })
    .describe(
      "The period of the evaluations: at most 24 hours, with `end` at most 5 minutes in the future",
    ),
  flags: z
    .record(
      z.string(),
      z.strictObject({
        true: EvaluationsOfValue,
        false: EvaluationsOfValue.describe(
          "Number of evaluations of a boolean flag with this value, or of a typed flag that returned the application's default; 0 by default",
        ),
        variations: z
          .record(VariationKey, Evaluations)
          .meta({ maxProperties: maxVariations })
          .optional()
          .describe(
            "Number of evaluations of a typed flag by the key of the variation. Keys that the flag does not have are ignored",
          ),
      }),
    )
    .describe("Evaluations by flag key. Keys that no flag of the environment has are ignored"),
  sdk: z
    .strictObject(readerFields)
    .optional()
    .describe(
      "The SDK that reports. `GET /api/v1/projects/{projectId}/environments/{environmentId}/readers` lists it",
    ),
});
export type UsageReport = z.infer<typeof UsageReport>;

export const sdkReportUsage = defineRoute({
  ...{ service: "sdk-edge", access: "server_or_reader_key", tag: "SDK" },
  operationId: "sdkReportUsage",
  method: "POST",
  path: "/api/v1/sdk/usage",
  summary: "Report the evaluations made in an application",
  description:
    "For SDKs that evaluate flags themselves. The evaluations appear in the usage of each flag, in the hour of `period.end`, and in `last_evaluated_at`. The request does not count as a request of the month. A reader or server key is needed. After a 503 or without a response, send the same report again with the same `Idempotency-Key`: it counts once. Of different reports with one key, the first counts.",
  body: UsageReport,
  example: {
    period: { start: "2026-10-31T09:00:00Z", end: "2026-10-31T09:01:00Z" },
    flags: {
      "new-checkout": { true: 1200, false: 34 },
      "checkout-color": { variations: { blue: 610, red: 590 } },
    },
    sdk: { name: "my-sdk", version: "1.4.0", knows: ["buckets", "values"] },
  },
  idempotent: "first_counts",
  success: {
    status: 202,
    description: "The report is stored, and will be counted once",
    body: z.strictObject({ accepted: z.literal(true) }),
  },
});
