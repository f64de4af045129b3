import { z } from "zod";
import { FlagKey } from "./flags.ts";
import { defineRoute } from "./route.ts";

/** What SDKs ask the edge for. A key's environment is the one whose values it gets. */
export const FlagValues = z.strictObject({ flags: z.record(z.string(), z.boolean()) });
export type FlagValues = z.infer<typeof FlagValues>;

export const EvaluationResult = z.strictObject({
  key: z.string(),
  value: z.boolean(),
  variation: z.enum(["on", "off"]),
  reason: z.enum(["static", "split", "targeting_match", "default", "disabled"]),
});
export type EvaluationResult = z.infer<typeof EvaluationResult>;

/** A context may hold any further attributes, so unknown fields are welcome here. */
export const FlagsContext = z.looseObject({});
export const EvaluateBody = z.looseObject({ user: z.looseObject({}).optional() });

const shared = { service: "sdk-edge", access: "any_key", tag: "SDK" } as const;
const flagsPath = "/api/v1/sdk/flags";
const evaluatePath = "/api/v1/sdk/evaluate";
const UserQuery = z.looseObject({ user_id: z.string().optional() });
const EvaluateQuery = z.looseObject({ key: FlagKey, user_id: z.string().optional() });

const flagsAnswer = {
  status: 200,
  description: "The values of all flags; 304 without a body when `If-None-Match` names its ETag",
  body: FlagValues,
} as const;

export const sdkGetFlags = defineRoute({
  ...shared,
  operationId: "sdkGetFlags",
  method: "GET",
  path: flagsPath,
  query: UserQuery,
  summary: "The values of all flags",
  success: flagsAnswer,
});

export const sdkPostFlags = defineRoute({
  ...shared,
  operationId: "sdkPostFlags",
  method: "POST",
  path: flagsPath,
  query: UserQuery,
  summary: "The values of all flags, with the user's context in the body",
  body: FlagsContext,
  bodyOptional: true,
  success: flagsAnswer,
});

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
  success: evaluateAnswer,
});

export const sdkPostEvaluate = defineRoute({
  ...shared,
  operationId: "sdkPostEvaluate",
  method: "POST",
  path: evaluatePath,
  query: EvaluateQuery,
  summary: "Evaluate one flag, with the user's context in the body",
  body: EvaluateBody,
  bodyOptional: true,
  success: evaluateAnswer,
});

export const sdkStream = defineRoute({
  ...shared,
  operationId: "sdkStream",
  method: "GET",
  path: "/api/v1/sdk/stream",
  query: UserQuery,
  summary: "A stream of the flags' values as they change",
  description:
    "Server-sent events. The first `flags` event has all values, later ones those that changed, with `removed` naming flags that no longer exist. `heartbeat` comes at the start and every 15 seconds. `id` is the ETag of all values; a reconnect with the present one as `Last-Event-ID` gets no full event.",
  success: {
    status: 200,
    description: "Events `flags` and `heartbeat`",
    contentType: "text/event-stream",
  },
  errors: ["SERVER_002"],
});
