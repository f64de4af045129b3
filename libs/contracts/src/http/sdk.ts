import { z } from "zod";
import { RolloutPercentage } from "../rules.ts";
import { defineRoute } from "./route.ts";
import { UserContext } from "./user-context.ts";

/** What SDKs ask the edge for. A key's environment is the one whose values it gets. */
export const FlagValues = z.strictObject({ flags: z.record(z.string(), z.boolean()) });
export type FlagValues = z.infer<typeof FlagValues>;

/** How a condition of a rule fared. The user's own values are never shown. */
export const ConditionTrace = z.strictObject({
  attribute: z.string(),
  operator: z.string(),
  held: z.boolean(),
  obstacle: z
    .string()
    .optional()
    .describe(
      "Why it did not hold, when it was not for the comparison: `attribute_missing` and such",
    ),
});

export const RuleTrace = z.strictObject({
  index: z.int(),
  id: z.string().optional(),
  name: z.string().optional(),
  reached: z.boolean().describe("False when a rule before it has decided"),
  matched: z.boolean(),
  conditions: z.array(ConditionTrace),
  inside_percentage: z
    .boolean()
    .optional()
    .describe("On the rule that decided by a percentage: whether the user is inside"),
});

export const EvaluationResult = z.strictObject({
  key: z.string(),
  value: z.boolean(),
  variation: z.enum(["on", "off"]),
  reason: z.enum(["static", "split", "targeting_match", "default", "disabled"]),
  trace: z
    .strictObject({
      enabled: z.boolean(),
      rollout_percentage: RolloutPercentage,
      rules: z.array(RuleTrace),
    })
    .optional()
    .describe("With `explain=true`: how the flag's rules came to this"),
});
export type EvaluationResult = z.infer<typeof EvaluationResult>;

const shared = {
  service: "sdk-edge",
  access: "any_key",
  tag: "SDK",
  readsUser: true,
} as const;
const flagsPath = "/api/v1/sdk/flags";
const evaluatePath = "/api/v1/sdk/evaluate";
const UserQuery = z.looseObject({ user_id: z.string().optional() });
export const EvaluateQuery = z.looseObject({
  key: z.string().describe("Key of the flag"),
  user_id: z.string().optional(),
  explain: z.boolean().optional(),
});

const flagsAnswer = {
  status: 200,
  description: "The values of all flags; 304 without a body when `If-None-Match` names its ETag",
  body: FlagValues,
} as const;

const bodyOnGet =
  "A body is read as on `POST`; prefer `POST`, because proxies can drop the body of a `GET`.";

export const sdkGetFlags = defineRoute({
  ...shared,
  operationId: "sdkGetFlags",
  method: "GET",
  path: flagsPath,
  query: UserQuery,
  summary: "The values of all flags",
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
  summary: "The values of all flags, with the user's context in the body",
  body: UserContext,
  example: { user_id: "user-42", country: "DE", plan: "pro" },
  bodyOptional: true,
  revalidated: true,
  success: flagsAnswer,
});

const explaining =
  "With `explain=true`, and a server key, also how each rule and each of its conditions fared.";

const evaluateAnswer = {
  status: 200,
  description: "The value, and why it is that",
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
  query: UserQuery,
  summary: "A stream of the flags' values as they change",
  description:
    "Server-sent events. The first `flags` event has all values for the user, later ones those of them that changed, with `removed` naming flags that no longer exist. `heartbeat` comes at the start and every 15 seconds. `id` is the ETag of all values; a reconnect with the present one as `Last-Event-ID` gets no full event.",
  success: {
    status: 200,
    description: "Events `flags` and `heartbeat`",
    contentType: "text/event-stream",
  },
  errors: ["SERVER_002"],
});
