import { z } from "zod";
import { defineRoute } from "./route.ts";
import { OfrepContext } from "./user-context.ts";

/**
 * The OpenFeature Remote Evaluation Protocol, version 0.3: what the official OpenFeature providers
 * speak. Its paths, names and errors are OFREP's own.
 */
export const OfrepRequest = z.looseObject({
  context: OfrepContext.nullable().optional(),
});

export const OfrepEvaluation = z.strictObject({
  key: z.string(),
  value: z.boolean(),
  reason: z.enum(["STATIC", "SPLIT", "TARGETING_MATCH", "DEFAULT", "DISABLED"]),
  variant: z.enum(["on", "off"]),
});

const OfrepEventStream = z.strictObject({
  type: z.literal("sse"),
  endpoint: z.strictObject({
    requestUri: z.string().describe("Holds a credential: not for logs"),
  }),
});

export const OfrepBulkEvaluation = z.strictObject({
  flags: z.array(OfrepEvaluation).describe("In the order of the keys"),
  eventStreams: z
    .array(OfrepEventStream)
    .optional()
    .describe("Where to hear of changes; absent where no secret for streams is configured"),
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

/** Errors whose codes say more than the status does. */
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
      .describe("The `etag` of the event that made the caller ask again"),
    flagConfigLastModified: z
      .string()
      .optional()
      .describe(
        "OFREP's other name for the version of an event. Halyard's events have an `etag`, so it is ignored",
      ),
  }),
  summary: "Evaluate all flags, by OFREP",
  description:
    "`eventStreams` says where to hear of changes: the address has a token in it that is good for a day and for nothing else.",
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
  summary: "Evaluate one flag, by OFREP",
  body: OfrepRequest,
  example: { context: { targetingKey: "user-42", country: "DE", plan: "pro" } },
  success: { status: 200, description: "The value, and why it is that", body: OfrepEvaluation },
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
  summary: "A stream that tells when to evaluate again, by OFREP",
  description:
    'Server-sent events, all of them `message` with `{"type":"refetchEvaluation","etag":"…"}`, and comments every 15 seconds that keep the connection alive. Take the address from `eventStreams` of a bulk evaluation.',
  query: z.looseObject({}),
  success: {
    status: 200,
    description: "Events `message`",
    contentType: "text/event-stream",
  },
});
