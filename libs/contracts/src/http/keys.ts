import { z } from "zod";
import { KeyKind } from "../key-kind.ts";
import { Name } from "../name.ts";
import { KeyScope } from "../people.ts";
import { exampleIds } from "./example-ids.ts";
import { Id, IdParam, InstantIn, InstantOut, KeyIdParam } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** API keys: stored as a hash, rotated with an overlap, revoked within a second. */
const maxOverlapSeconds = 7 * 24 * 60 * 60;

const keyFields = {
  id: z.string(),
  kind: KeyKind,
  name: z.string(),
  environment_id: Id,
  user_id: Id,
  environment_only: z.boolean(),
  scope: KeyScope.optional().describe("Of a server key: what it may do at most"),
  issued_by: z
    .string()
    .nullable()
    .describe(
      "The id of the key that issued this one; null for keys issued by the operator or by release 0.1.0",
    ),
  created_at: InstantOut,
  expires_at: InstantOut.nullable(),
  revoked_at: InstantOut.nullable(),
  last_used_at: InstantOut.nullable(),
};

export const ApiKey = z.strictObject(keyFields);
export type ApiKey = z.infer<typeof ApiKey>;

/** The only response that contains the key itself. */
export const IssuedApiKey = z.strictObject({ ...keyFields, key: z.string() });
export type IssuedApiKey = z.infer<typeof IssuedApiKey>;

export const IssueKey = z.strictObject({
  kind: KeyKind.describe(
    "`client` keys are public and read values; `reader` keys are for applications on servers, which also read rules and report usage; `server` keys also manage flags",
  ),
  name: Name,
  user_id: Id.optional().describe(
    "The user recorded as the author of the key's changes. A server key may omit it, because it issues keys for its own user only; the operator names one. Under `npm start`, the example is the user of the demo; in production, it is a placeholder",
  ),
  expires_at: InstantIn.nullable().optional(),
  environment_only: z
    .boolean()
    .optional()
    .describe("The key works only in its own environment. Always true for a reader key"),
  scope: KeyScope.optional().describe(
    "Of a server key: `read` reads only, `propose` also opens change requests, `write` (the default) may do what its user may. Only a key with `write` handles keys",
  ),
});
export const RotateKey = z.strictObject({
  overlap_seconds: z.int().min(0).max(maxOverlapSeconds).optional(),
});

const keys = "/api/v1/projects/:projectId/environments/:environmentId/keys";
const EnvironmentParams = z.strictObject({ projectId: IdParam, environmentId: IdParam });
const KeyParams = z.strictObject({
  projectId: IdParam,
  environmentId: IdParam,
  keyId: KeyIdParam,
});
const shared = {
  service: "management",
  access: "operator_or_server_key",
  tag: "API keys",
} as const;

export const issueKey = defineRoute({
  ...shared,
  operationId: "issueKey",
  method: "POST",
  path: keys,
  params: EnvironmentParams,
  summary: "Issue an API key",
  description:
    "Only this response contains `key`. A server key issues keys for its own user only. A key that expires issues keys that expire no later; without `expires_at`, they expire with it. An environment has at most 1,000 live keys, which are neither revoked nor expired; a further one is rejected with 409.",
  body: IssueKey,
  example: {
    kind: "server",
    name: "Deployment pipeline",
    user_id: exampleIds.userId,
  },
  idempotent: true,
  carriesKey: true,
  success: { status: 201, description: "The key", body: IssuedApiKey },
  errors: ["CONFLICT_001"],
});

export const listKeys = defineRoute({
  ...shared,
  operationId: "listKeys",
  method: "GET",
  path: keys,
  params: EnvironmentParams,
  summary: "List the API keys of an environment",
  description:
    "Newest first. Without `limit`, the response contains all live keys, and those that were revoked or have expired in the last 30 days. It is sent while they are read: if the connection closes before the end of the body, repeat the request. With `limit`, pages contain all stored keys, and `next_cursor` is null on the last one.",
  query: z.strictObject({
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description:
      "The keys of the environment, or a page of them when `limit` is given, without their secrets",
    body: z.strictObject({
      keys: z.array(ApiKey),
      next_cursor: z.string().nullable().optional(),
    }),
  },
});

export const getKey = defineRoute({
  ...shared,
  operationId: "getKey",
  method: "GET",
  path: `${keys}/:keyId`,
  params: KeyParams,
  summary: "Read an API key",
  description: "The text of a key is returned only when it is issued or rotated.",
  success: { status: 200, description: "The key, without its secret", body: ApiKey },
});

export const rotateKey = defineRoute({
  ...shared,
  operationId: "rotateKey",
  method: "POST",
  path: `${keys}/:keyId/rotate`,
  params: KeyParams,
  summary: "Replace an API key",
  description:
    "The old key stops working after `overlap_seconds` (default 0, at most 7 days). The new key has the same kind, scope, restriction and expiry. During the overlap, both count as live keys. A server key can rotate only keys that expire no later than itself.",
  body: RotateKey,
  example: { overlap_seconds: 3_600 },
  bodyOptional: true,
  idempotent: true,
  carriesKey: true,
  success: { status: 201, description: "The new key", body: IssuedApiKey },
  errors: ["CONFLICT_001"],
});

export const revokeKey = defineRoute({
  ...shared,
  operationId: "revokeKey",
  method: "DELETE",
  path: `${keys}/:keyId`,
  params: KeyParams,
  summary: "Revoke an API key",
  description:
    "With `issued=true`, this also revokes every key that this key or one of its successors has issued, directly or indirectly, and the successors of those keys.",
  query: z.strictObject({ issued: z.boolean().optional() }),
  success: { status: 204, description: "The key no longer works" },
});
