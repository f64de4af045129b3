import { z } from "zod";
import { TypedValue } from "../values.ts";
import { defineRoute } from "./route.ts";
import { OfrepContext } from "./user-context.ts";

/**
 * The OpenFeature Remote Evaluation Protocol (OFREP), version 0.3, which the official OpenFeature providers use. OFREP
 * defines the paths, names and errors.
 */
export const OfrepRequest = z.looseObject({
  context: OfrepContext.nullable().optional(),
});

export const OfrepEvaluation = z.strictObject({
  key: z.string(),
  value: z
    .union([z.boolean(), TypedValue])
    .optional()
    .describe(
      "In the type of the flag. Absent: the default of the application. If one value of a number flag is written with a fraction or an exponent, all are",
    ),
  reason: z.enum(["STATIC", "SPLIT", "TARGETING_MATCH", "DEFAULT", "DISABLED"]),
  variant: z
    .string()
    .describe("Key of the variation; `on` or `off` for a boolean flag. Empty without a value"),
  metadata: z
    .strictObject({
      version: z
        .int()
        .min(1)
        .optional()
        .describe("Only on the evaluation of one typed flag: the version of the flag"),
      prerequisite: z
        .string()
        .optional()
        .describe(
          "Key of the required flag that holds the flag back. The reason is `DEFAULT` then",
        ),
    })
    .optional(),
});

const OfrepEventStream = z.strictObject({
  type: z.literal("sse"),
  endpoint: z.strictObject({
    requestUri: z.string().describe("Contains a credential; do not log it"),
  }),
});

export const OfrepBulkEvaluation = z.strictObject({
  flags: z.array(OfrepEvaluation).describe("In the order of the keys"),
  eventStreams: z
    .array(OfrepEventStream)
    .optional()
    .describe("The stream of change events; absent if no secret for streams is configured"),
});

const errorCode = z.enum(["PARSE_ERROR", "INVALID_CONTEXT", "FLAG_NOT_FOUND", "GENERAL"]);
export type OfrepErrorCode = z.infer<typeof errorCode>;

export const OfrepError = z.strictObject({ errorCode, errorDetails: z.string() });
export type OfrepError = z.infer<typeof OfrepError>;

export const OfrepFlagError = z.strictObject({
  key: z.string(),
  ...OfrepError.shape,
});
export type OfrepFlagError = z.infer<typeof OfrepFlagError>;

const shared = { service: "sdk-edge", tag: "OpenFeature" } as const;

/** Errors whose codes are more specific than the status. */
function contextErrors(body: z.ZodType, key: { key?: string }) {
  return {
    400: {
      description:
        "PARSE_ERROR: the body is not a JSON object. INVALID_CONTEXT: the context is not an object, or an id has the wrong type",
      body,
      example: {
        ...key,
        errorCode: "INVALID_CONTEXT",
        errorDetails: "/context must be an object",
      },
    },
  };
}

export const ofrepEvaluateFlags = defineRoute({
  ...shared,
  access: "any_key_in_either_header",
  operationId: "ofrepEvaluateFlags",
  method: "POST",
  path: "/ofrep/v1/evaluate/flags",
  query: z.looseObject({
    flagConfigEtag: z
      .string()
      .optional()
      .describe("The `etag` of the event that caused this request"),
    flagConfigLastModified: z
      .string()
      .optional()
      .describe(
        "OFREP's alternative to `flagConfigEtag`. Ignored, because the events of Halyard have an `etag`",
      ),
  }),
  summary: "Evaluate all flags with OFREP",
  description:
    "`eventStreams` contains the URL of the stream of change events. Its token is valid for one day and for this stream only.",
  body: OfrepRequest,
  example: { context: { targetingKey: "user-42", country: "DE", plan: "pro" } },
  revalidated: true,
  success: { status: 200, description: "The evaluations", body: OfrepBulkEvaluation },
  ownErrors: contextErrors(OfrepError, {}),
});

export const ofrepEvaluateFlag = defineRoute({
  ...shared,
  access: "any_key_in_either_header",
  operationId: "ofrepEvaluateFlag",
  method: "POST",
  path: "/ofrep/v1/evaluate/flags/:key",
  params: z.strictObject({ key: z.string() }),
  summary: "Evaluate one flag with OFREP",
  description:
    "The reason is that of the SDK endpoints in upper case. A disabled boolean flag has the value `false` and the reason `DISABLED`; a disabled typed flag has its off variation. A value is in the type of its flag, so providers decide about `TYPE_MISMATCH`.",
  body: OfrepRequest,
  example: { context: { targetingKey: "user-42", country: "DE", plan: "pro" } },
  success: { status: 200, description: "The value and its reason", body: OfrepEvaluation },
  ownErrors: {
    ...contextErrors(OfrepFlagError, { key: "checkout" }),
    404: {
      description: "FLAG_NOT_FOUND: there is no flag with this key",
      body: OfrepFlagError,
      example: {
        key: "checkout",
        errorCode: "FLAG_NOT_FOUND",
        errorDetails: "There is no flag with this key",
      },
    },
  },
});

export const ofrepStream = defineRoute({
  ...shared,
  access: "stream_token",
  operationId: "ofrepStream",
  method: "GET",
  path: "/ofrep/v1/stream",
  summary: "Stream of change events with OFREP",
  description:
    'Server-sent events. Each is a `message` with `{"type":"refetchEvaluation","etag":"…"}`, after which the client evaluates again. A comment every 15 seconds keeps the connection alive. The URL is in `eventStreams` of a bulk evaluation.',
  query: z.looseObject({}),
  success: {
    status: 200,
    description: "Events `message`",
    contentType: "text/event-stream",
  },
});
