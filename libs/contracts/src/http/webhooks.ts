import { z } from "zod";
import { AudienceChange } from "../audiences.ts";
import {
  AudienceEvent,
  ChangeRequestEvent,
  EventName,
  FlagEvent,
  FlagEventName,
  ProtectionEvent,
} from "../events.ts";
import { Name } from "../name.ts";
import { State } from "../state.ts";
import { loneSurrogate } from "../text-pattern.ts";
import { Id, IdParam, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Webhooks, which deliver events about flags to a customer's URL, and their deliveries. */
const maxUrlLength = 2_048;
const maxOverlapSeconds = 7 * 24 * 60 * 60;

const Url = z
  .string()
  .max(maxUrlLength)
  .describe(
    "An absolute `https` URL without user name and password; `http` only in development. Its host must be public, and its port must not be one of another protocol, such as 25 or 6379",
  );
const Events = z
  .array(EventName)
  .min(1)
  .meta({ uniqueItems: true })
  .describe("The events to deliver, each at most once in the list");
/** In characters. The dispatcher also limits the number of bytes to this value. */
const maxSecretLength = 256;
const Secret = z
  .string()
  .min(1)
  .max(maxSecretLength)
  .regex(new RegExp(`^[^${loneSurrogate}]*$`, "u"))
  .describe(
    "must be 1 to 256 bytes of UTF-8. Deliveries are signed with it, and no response contains it",
  );

const traceContext = z
  .boolean()
  .describe(
    "Deliveries have the headers `traceparent` and `tracestate` (W3C Trace Context), if this installation has traces",
  );

export const Webhook = z.strictObject({
  id: Id,
  project_id: Id,
  name: z.string(),
  url: z.string(),
  events: z.array(EventName),
  enabled: z.boolean(),
  trace_context: traceContext,
  has_secret: z.boolean(),
  version: z
    .int()
    .describe("Starts at 1 and rises with each change, also of the secret. The ETag contains it"),
  created_at: InstantOut,
  updated_at: InstantOut,
});
export type Webhook = z.infer<typeof Webhook>;

export const CreateWebhook = z.strictObject({
  name: Name,
  url: Url,
  events: Events,
  secret: Secret.nullable().optional(),
  enabled: z.boolean().optional(),
  trace_context: traceContext.optional(),
});
export type CreateWebhook = z.infer<typeof CreateWebhook>;

export const UpdateWebhook = z
  .strictObject({
    name: Name.optional(),
    url: Url.optional(),
    events: Events.optional(),
    secret: Secret.nullable().optional().describe("A new secret, or null for none"),
    secret_overlap_seconds: z
      .int()
      .min(0)
      .max(maxOverlapSeconds)
      .optional()
      .describe(
        "Seconds during which deliveries also have a Standard Webhooks signature with the previous secret. Allowed only with a new `secret`",
      ),
    enabled: z.boolean().optional(),
    trace_context: traceContext.optional(),
  })
  .meta({
    if: { required: ["secret"], properties: { secret: { type: "string" } } },
    else: {
      properties: {
        secret_overlap_seconds: {
          not: {},
          description: "must come with a new /secret",
        },
      },
    },
  });
export type UpdateWebhook = z.infer<typeof UpdateWebhook>;

const responseBody = z.string().nullable().describe("The first 2 KiB of the response");

export const WebhookTestResult = z.strictObject({
  success: z.boolean(),
  status_code: z.int().describe("The status of the response; 0 without a response"),
  response_time_ms: z.int(),
  error: z.string().nullable().describe("Why there was no response. Null with a response"),
  response_body: responseBody,
});
export type WebhookTestResult = z.infer<typeof WebhookTestResult>;

export const DeliveryStatus = z.enum([
  "pending",
  "delivering",
  "retrying",
  "delivered",
  "failed",
  "cancelled",
]);
export type DeliveryStatus = z.infer<typeof DeliveryStatus>;

const deliveryFields = {
  id: Id,
  webhook_id: Id,
  event_id: Id,
  event: EventName,
  flag_key: z.string().nullable().describe("Only for an event about a flag, otherwise null"),
  environment_id: Id.nullable().describe("Null for an event about an audience or a change request"),
  audience_key: z.string().optional().describe("Only for an event about an audience"),
  change_request_id: Id.optional().describe("Only for an event about a change request"),
  status: DeliveryStatus,
  attempts_made: z.int(),
  last_status_code: z
    .int()
    .nullable()
    .describe("The status of the response to the last attempt. Null without a response"),
  created_at: InstantOut,
  next_attempt_at: InstantOut.nullable(),
  delivered_at: InstantOut.nullable(),
};

export const Delivery = z.strictObject(deliveryFields);
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryAttempt = z.strictObject({
  attempted_at: InstantOut,
  status_code: z.int().nullable().describe("Null without a response"),
  duration_ms: z.int(),
  error: z.string().nullable(),
  response_body: responseBody,
});
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

export const FlagPayload = z.object({
  event: FlagEventName,
  timestamp: InstantOut.describe("Strictly increasing per flag; receivers can deduplicate by it"),
  flag: z.object({ id: Id, key: z.string(), name: z.string(), enabled: z.boolean() }),
  environment: z.object({ id: Id, name: z.string() }),
  triggered_by: z.object({ id: Id, email: z.string() }),
  /** `flag_state.updated` only. */
  state: State.optional(),
  /** `flag.updated` only. */
  changes: FlagEvent.shape.changes,
  /** `flag.created` of a typed flag only. */
  value_type: FlagEvent.shape.value_type,
  variations: FlagEvent.shape.variations,
});
export type FlagPayload = z.infer<typeof FlagPayload>;

export const AudiencePayload = z.object({
  event: AudienceEvent.shape.event,
  timestamp: InstantOut.describe(
    "Strictly increasing per audience; receivers can deduplicate by it",
  ),
  audience: z.object({ key: z.string(), name: z.string() }),
  change: AudienceChange,
  flags: z
    .array(z.string())
    .max(100)
    .describe("Keys of the flags whose rules use the audience, in alphabetical order"),
  flags_total: z.int().min(0),
  triggered_by: z.object({ id: Id, email: z.string() }),
});
export type AudiencePayload = z.infer<typeof AudiencePayload>;

const text = z
  .string()
  .describe("The event in words, for chat systems that show the `text` of a message");

export const ChangeRequestPayload = z.object({
  event: ChangeRequestEvent.shape.event,
  timestamp: InstantOut.describe(
    "Strictly increasing per change request; receivers can deduplicate by it",
  ),
  change_request: ChangeRequestEvent.shape.change_request,
  comment: ChangeRequestEvent.shape.comment,
  bypass_reason: ChangeRequestEvent.shape.bypass_reason,
  triggered_by: z.object({ id: Id, email: z.string() }),
  text,
});
export type ChangeRequestPayload = z.infer<typeof ChangeRequestPayload>;

export const ProtectionPayload = z.object({
  event: ProtectionEvent.shape.event,
  timestamp: InstantOut.describe(
    "Strictly increasing per environment; receivers can deduplicate by it",
  ),
  environment: ProtectionEvent.shape.environment,
  protected: ProtectionEvent.shape.protected,
  protected_before: ProtectionEvent.shape.protected_before,
  bypass_reason: ProtectionEvent.shape.bypass_reason,
  triggered_by: z.object({ id: Id, email: z.string() }),
  text,
});
export type ProtectionPayload = z.infer<typeof ProtectionPayload>;

/** The body of a delivery. Later releases may add members, which receivers ignore. */
export const WebhookPayload = z.union([
  FlagPayload,
  AudiencePayload,
  ChangeRequestPayload,
  ProtectionPayload,
]);
export type WebhookPayload = z.infer<typeof WebhookPayload>;

export const DeliveryWithAttempts = z.strictObject({
  ...deliveryFields,
  payload: WebhookPayload,
  attempts: z.array(DeliveryAttempt).describe("In chronological order"),
});
export type DeliveryWithAttempts = z.infer<typeof DeliveryWithAttempts>;

const webhooks = "/api/v1/projects/:projectId/webhooks";
const webhook = `${webhooks}/:webhookId`;
const deliveries = `${webhook}/deliveries`;
const ProjectParams = z.strictObject({ projectId: IdParam });
const WebhookParams = z.strictObject({ projectId: IdParam, webhookId: IdParam });
const DeliveryParams = z.strictObject({
  projectId: IdParam,
  webhookId: IdParam,
  deliveryId: IdParam,
});
const shared = { service: "webhook-dispatcher", access: "server_key", tag: "Webhooks" } as const;

export const createWebhook = defineRoute({
  ...shared,
  operationId: "createWebhook",
  method: "POST",
  path: webhooks,
  params: ProjectParams,
  summary: "Create a webhook",
  description:
    "A webhook receives events of all environments of the project, so `environment_only` keys cannot use webhooks. A project can have 100 webhooks; more are rejected with 429.",
  body: CreateWebhook,
  example: {
    name: "Deployments channel",
    url: "https://example.com/hooks/halyard",
    events: ["flag.toggled", "flag_state.updated"],
    secret: "a secret of your own",
  },
  idempotent: true,
  success: { status: 201, description: "The webhook", body: Webhook },
  errors: ["CONFLICT_001"],
});

export const listWebhooks = defineRoute({
  ...shared,
  operationId: "listWebhooks",
  method: "GET",
  path: webhooks,
  params: ProjectParams,
  summary: "List the webhooks of the project",
  description: "Secrets are never returned; `has_secret` is true for a webhook that has one.",
  success: {
    status: 200,
    description: "The webhooks of the project",
    body: z.strictObject({ webhooks: z.array(Webhook) }),
  },
});

export const getWebhook = defineRoute({
  ...shared,
  operationId: "getWebhook",
  method: "GET",
  path: webhook,
  params: WebhookParams,
  summary: "Read a webhook",
  description: "The `ETag` is the version of the webhook, for `If-Match`.",
  success: { status: 200, description: "The webhook", body: Webhook },
});

export const updateWebhook = defineRoute({
  ...shared,
  operationId: "updateWebhook",
  method: "PATCH",
  alsoMethod: "PUT",
  path: webhook,
  params: WebhookParams,
  summary: "Change a webhook, disable or enable it, or replace its secret",
  description:
    "Disabling a webhook cancels its pending deliveries. With a new `secret` and `secret_overlap_seconds`, deliveries have Standard Webhooks signatures with both secrets for that time. Without an overlap, the previous secret ends immediately. A request whose response was lost can be repeated without `If-Match`.",
  body: UpdateWebhook,
  example: { enabled: false },
  conditional: true,
  success: { status: 200, description: "The webhook after the change", body: Webhook },
  errors: ["CONFLICT_001", "CONFLICT_003"],
});

export const deleteWebhook = defineRoute({
  ...shared,
  operationId: "deleteWebhook",
  method: "DELETE",
  path: webhook,
  params: WebhookParams,
  summary: "Delete a webhook",
  description: "Pending deliveries are cancelled.",
  conditional: true,
  success: { status: 204, description: "The webhook no longer exists" },
  errors: ["CONFLICT_003"],
});

export const testWebhook = defineRoute({
  ...shared,
  operationId: "testWebhook",
  method: "POST",
  path: `${webhook}/test`,
  params: WebhookParams,
  summary: "Send a test payload to the URL of a webhook",
  description:
    "The response contains the result, even if the target failed. A test is not a delivery and is not retried. The target must respond within 30 seconds. An organization can run 5 tests at the same time; more are rejected with 429.",
  success: { status: 200, description: "The response of the target", body: WebhookTestResult },
});

export const listDeliveries = defineRoute({
  ...shared,
  operationId: "listDeliveries",
  method: "GET",
  path: deliveries,
  params: WebhookParams,
  summary: "List the deliveries of a webhook, newest first",
  description:
    "Deliveries without their payloads and attempts. `next_cursor` is absent on the last page.",
  query: z.strictObject({
    status: DeliveryStatus.optional(),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description: "A page of deliveries: 100 without `limit`",
    body: z.strictObject({ deliveries: z.array(Delivery), next_cursor: z.string().nullable() }),
  },
});

export const getDelivery = defineRoute({
  ...shared,
  operationId: "getDelivery",
  method: "GET",
  path: `${deliveries}/:deliveryId`,
  params: DeliveryParams,
  summary: "Read a delivery with its payload and every attempt",
  description:
    "`attempts` contains the status, the duration, and the beginning of the response of each attempt.",
  success: { status: 200, description: "The delivery", body: DeliveryWithAttempts },
});

export const redeliver = defineRoute({
  ...shared,
  operationId: "redeliver",
  method: "POST",
  path: `${deliveries}/:deliveryId/redeliver`,
  params: DeliveryParams,
  summary: "Make one more attempt now, with the same payload and ids",
  description:
    "A delivery that has ended gets one attempt without retries, even if the webhook is disabled. A delivery that waits for a retry makes this retry now. The delays of its later retries do not change, so repeated requests use up its retries. If an attempt is in progress, no other one is made.",
  success: {
    status: 202,
    description: "The delivery, which is `pending` or already `delivering`",
    body: Delivery,
  },
});
