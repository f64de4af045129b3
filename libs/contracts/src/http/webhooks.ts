import { z } from "zod";
import { EventName, FlagEvent, StateInEvent } from "../events.ts";
import { Id, IdParam, InstantOut, Name } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Webhooks: customers' systems are told when flags change, and can see what they were told. */
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
  .describe("The kinds of events to be told of, each once");
/** As many characters as the bytes that are allowed; the dispatcher counts the bytes. */
const maxSecretLength = 256;
const Secret = z
  .string()
  .min(1)
  .max(maxSecretLength)
  .regex(/^\P{Cs}*$/u)
  .describe(
    "must be 1 to 256 bytes of UTF-8, with which deliveries are signed. It never comes back in an answer",
  );

export const Webhook = z.strictObject({
  id: Id,
  project_id: Id,
  name: z.string(),
  url: z.string(),
  events: z.array(EventName),
  enabled: z.boolean(),
  has_secret: z.boolean(),
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
});
export type CreateWebhook = z.infer<typeof CreateWebhook>;

export const UpdateWebhook = z
  .strictObject({
    name: Name.optional(),
    url: Url.optional(),
    events: Events.optional(),
    secret: Secret.nullable().optional().describe("Another secret, or null for none"),
    secret_overlap_seconds: z
      .int()
      .min(0)
      .max(maxOverlapSeconds)
      .optional()
      .describe(
        "How long the Standard Webhooks signatures are made with the secret before as well; only together with another `secret`",
      ),
    enabled: z.boolean().optional(),
  })
  .meta({
    if: { required: ["secret"], properties: { secret: { type: "string" } } },
    else: {
      properties: {
        secret_overlap_seconds: {
          not: {},
          description: "must come together with another /secret, which it overlaps",
        },
      },
    },
  });
export type UpdateWebhook = z.infer<typeof UpdateWebhook>;

export const WebhookTestResult = z.strictObject({
  success: z.boolean(),
  status_code: z.int().describe("What the target answered; 0 when there was no answer"),
  response_time_ms: z.int(),
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
  status: DeliveryStatus,
  attempts_made: z.int(),
  created_at: InstantOut,
  next_attempt_at: InstantOut.nullable(),
  delivered_at: InstantOut.nullable(),
};

export const Delivery = z.strictObject(deliveryFields);
export type Delivery = z.infer<typeof Delivery>;

export const DeliveryAttempt = z.strictObject({
  attempted_at: InstantOut,
  status_code: z.int().nullable().describe("Null when there was no answer"),
  duration_ms: z.int(),
  error: z.string().nullable(),
  response_body: z.string().nullable().describe("The first 2 KiB of the answer"),
});
export type DeliveryAttempt = z.infer<typeof DeliveryAttempt>;

/** The body of a delivery. Later releases may add members, which receivers ignore. */
export const WebhookPayload = z.object({
  event: EventName,
  timestamp: InstantOut.describe("Strictly increasing per flag, by which receivers de-duplicate"),
  flag: z.object({ id: Id, key: z.string(), name: z.string(), enabled: z.boolean() }),
  environment: z.object({ id: Id, name: z.string() }),
  triggered_by: z.object({ id: Id, email: z.string() }),
  /** `flag_state.updated` only. */
  state: StateInEvent.optional(),
  /** `flag.updated` only. */
  changes: FlagEvent.shape.changes,
});
export type WebhookPayload = z.infer<typeof WebhookPayload>;

export const DeliveryWithAttempts = z.strictObject({
  ...deliveryFields,
  payload: WebhookPayload,
  attempts: z.array(DeliveryAttempt).describe("In the order in which they were made"),
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
  summary: "Have a URL told of events",
  description:
    "A webhook hears of all environments of the project; so a key made with `environment_only` cannot use it. A project can have 100 webhooks; more are refused with 429.",
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
  success: {
    status: 200,
    description: "Its webhooks",
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
  success: { status: 200, description: "The webhook", body: Webhook },
});

export const updateWebhook = defineRoute({
  ...shared,
  operationId: "updateWebhook",
  method: "PATCH",
  alsoMethod: "PUT",
  path: webhook,
  params: WebhookParams,
  summary: "Change a webhook, switch it off or on, or give it another secret",
  description:
    "Switching it off cancels what has not been delivered. With another `secret` and `secret_overlap_seconds` the Standard Webhooks signatures are made with both for that time. Without an overlap the one before ends at once. A request whose answer was lost can be repeated.",
  body: UpdateWebhook,
  example: { enabled: false },
  success: { status: 200, description: "The webhook as it is now", body: Webhook },
  errors: ["CONFLICT_001"],
});

export const deleteWebhook = defineRoute({
  ...shared,
  operationId: "deleteWebhook",
  method: "DELETE",
  path: webhook,
  params: WebhookParams,
  summary: "Delete a webhook",
  description: "What has not been delivered is cancelled.",
  success: { status: 204, description: "The webhook is gone" },
});

export const testWebhook = defineRoute({
  ...shared,
  operationId: "testWebhook",
  method: "POST",
  path: `${webhook}/test`,
  params: WebhookParams,
  summary: "Send a test payload to a webhook's URL now",
  description:
    "Answered with what happened, also when the target failed. It counts as no delivery and is not repeated. The target has 30 seconds. An organization can run 5 tests at once; more are refused with 429.",
  success: { status: 200, description: "What the target answered", body: WebhookTestResult },
});

export const listDeliveries = defineRoute({
  ...shared,
  operationId: "listDeliveries",
  method: "GET",
  path: deliveries,
  params: WebhookParams,
  summary: "List the deliveries of a webhook, the newest first",
  query: z.strictObject({
    status: DeliveryStatus.optional(),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description: "A page of deliveries, 100 of them unless `limit` says otherwise",
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
  success: { status: 200, description: "The delivery", body: DeliveryWithAttempts },
});

export const redeliver = defineRoute({
  ...shared,
  operationId: "redeliver",
  method: "POST",
  path: `${deliveries}/:deliveryId/redeliver`,
  params: DeliveryParams,
  summary: "Make one more attempt now, of the same payload with the same ids",
  description:
    "What has ended gets one attempt, without retries, also when the webhook is switched off. What waits for its next attempt gets it now, as the retry that it is: the others keep their delays, and a delivery that is asked for again and again has none left in the end. An attempt that is just being made is the one asked for.",
  success: {
    status: 202,
    description: "The delivery, which is `pending`, or `delivering` already",
    body: Delivery,
  },
});
