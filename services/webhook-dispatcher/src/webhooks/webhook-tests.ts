import {
  type EventName,
  FlagEventName,
  type WebhookPayload,
  type WebhookTestResult,
} from "@halyard/contracts";
import { createProblem, type Problem, UnavailableError } from "@halyard/http";
import { currentSpan } from "@halyard/tracing";
import type { Logger } from "pino";
import type { SecretBox } from "../secrets/secret-box.ts";
import { outgoing } from "../sending/outgoing.ts";
import {
  payloadOf,
  type ShownAudienceEvent,
  type ShownChangeRequestEvent,
  type ShownFlagEvent,
  type ShownProtectionEvent,
} from "../sending/payload.ts";
import { logAddressNotAllowed, type Send, type SendResult } from "../sending/send.ts";
import type { Webhook } from "./webhook.ts";
import { signingSecrets } from "./webhook-secrets.ts";

/**
 * Sends test payloads immediately, once, and outside the bounds of deliveries. The HTTP request stays open until the
 * target responds, so the number of concurrent tests of an organization is limited. A stop cancels the tests, because a
 * hanging target may take longer than a stop may.
 */
export type WebhookTests = {
  run(webhook: Webhook, userId: string): Promise<SendResult | Problem>;
  /** Cancels the tests in progress and all later ones. */
  stop(): Promise<void>;
};

const tooMany = (max: number) =>
  createProblem(
    "RATE_001",
    `The limit of an organization is ${max} concurrent webhook tests. Wait until one ends, or have the operator raise WEBHOOK_TESTS_PER_ORGANIZATION.`,
    {
      "retry-after": "1",
      "ratelimit-policy": `"webhook-tests";q=${max};qu="concurrent-requests"`,
      ratelimit: '"webhook-tests";r=0',
    },
  );

export function createWebhookTests(options: {
  /** Limit per process. It keeps one organization from holding many requests open. */
  maxPerOrganization: number;
  send: Send;
  secrets: SecretBox;
  newId: () => string;
  now: () => Date;
  logger: Logger;
}): WebhookTests {
  const { send, secrets, newId, now, logger, maxPerOrganization } = options;
  const stopping = new AbortController();
  const runningByOrganization = new Map<string, number>();

  function count(organizationId: string, change: 1 | -1): void {
    const running = (runningByOrganization.get(organizationId) ?? 0) + change;
    if (running === 0) runningByOrganization.delete(organizationId);
    else runningByOrganization.set(organizationId, running);
  }

  async function sendTest(webhook: Webhook, userId: string): Promise<SendResult> {
    const at = now();
    const payload = testPayload(webhook.events, { userId, at });
    const result = await send({
      url: webhook.url,
      ...outgoing({
        deliveryId: newId(),
        event: payload.event,
        payload: JSON.stringify(payload),
        at,
        secrets: signingSecrets(secrets, webhook, at, logger),
        trace: webhook.traceContext ? currentSpan()?.context : undefined,
      }),
      signal: stopping.signal,
    });
    logAddressNotAllowed(result, webhook.id, logger);
    if (stopping.signal.aborted) throw new UnavailableError("This process is stopping. Try again.");
    return result;
  }

  return {
    async run(webhook, userId) {
      const { organizationId } = webhook;
      if ((runningByOrganization.get(organizationId) ?? 0) >= maxPerOrganization)
        return tooMany(maxPerOrganization);
      count(organizationId, 1);
      try {
        return await sendTest(webhook, userId);
      } finally {
        count(organizationId, -1);
      }
    },
    stop: async () => stopping.abort(),
  };
}

/** Returns the result of a test in the format of the API. Reason and body are those that an attempt of a delivery has. */
export function testResult(result: SendResult): WebhookTestResult {
  const answered = result.kind === "answered";
  const status = answered ? result.status : 0;
  return {
    success: status >= 200 && status < 300,
    status_code: status,
    response_time_ms: Math.round(result.durationMs),
    error: answered ? null : result.error,
    response_body: answered ? result.body : null,
  };
}

/** The id of a flag and of an environment that do not exist. */
const nilId = "00000000-0000-0000-0000-000000000000";

/**
 * Returns the payload of an event that the webhook subscribes to, about something that does not exist. It contains the id
 * of the user that requested the test, and a reserved e-mail address (RFC 2606). Events of flags come first.
 */
export function testPayload(
  events: readonly EventName[],
  { userId, at }: { userId: string; at: Date },
): WebhookPayload {
  const timestamp = at.toISOString();
  const triggered_by = { id: userId, email: "webhook-test@example.com" };
  const shared = { timestamp, triggered_by };
  const ofFlag = events.find(isOfFlag);
  const [event = "flag.toggled"] = ofFlag === undefined ? events : [ofFlag];
  if (isOfFlag(event)) return payloadOf({ event, ...testOfFlag, ...shared });
  if (event === "audience.updated") return payloadOf({ event, ...testOfAudience, ...shared });
  return event === "environment.protection_changed"
    ? payloadOf({ event, ...testOfProtection, ...shared })
    : payloadOf({ event, ...testOfChangeRequest, ...shared });
}

const isOfFlag = (event: EventName): event is FlagEventName =>
  FlagEventName.options.some((each) => each === event);

type Test<Shown> = Omit<Shown, "event" | "timestamp" | "triggered_by">;

const environment = { id: nilId, name: "webhook-test" };

const testOfFlag: Test<ShownFlagEvent> = {
  flag: {
    id: nilId,
    key: "webhook-test",
    name: "Webhook test",
    description: "",
    type: "release",
  },
  environment,
  state: { enabled: true, rollout_percentage: 100, targeting_rules: [] },
  changes: { name: { from: "Before", to: "Webhook test" } },
};

const testOfAudience: Test<ShownAudienceEvent> = {
  audience: { key: "webhook-test", name: "Webhook test", description: "" },
  change: "updated",
  flags: ["webhook-test"],
  flags_total: 1,
};

const testOfChangeRequest: Test<ShownChangeRequestEvent> = {
  change_request: {
    ...{ id: nilId, title: "Webhook test", reason: "", status: "open" },
    summary: "webhook-test in webhook-test: 25 % → 50 %",
    environments: [environment],
  },
  cause: "manual",
};

const testOfProtection: Test<ShownProtectionEvent> = {
  environment,
  protected: { approvals: 1, self_approval: false, without_approval: [] },
  protected_before: null,
};
