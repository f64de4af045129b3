import type { AuditRecorded } from "@halyard/contracts";
import type { Webhook } from "./webhook.ts";

/** The user and the API key of a change, or the service itself. */
export type Author = { userId: string; apiKeyId: string } | "webhook-dispatcher";

export type AuditContext = { author: Author; newId: () => string; now: Date };

/** Returns the message for the audit log about a webhook that was created (`before` is null), changed or deleted. */
export function webhookAudit(
  before: Webhook | null,
  after: Webhook | null,
  { author, newId, now }: AuditContext,
): AuditRecorded {
  const webhook = (after ?? before) as Webhook;
  const isService = author === "webhook-dispatcher";
  return {
    id: newId(),
    organization_id: webhook.organizationId,
    project_id: webhook.projectId,
    action: actionOf(before, after),
    service: "webhook-dispatcher",
    user_id: isService ? null : author.userId,
    api_key_id: isService ? null : author.apiKeyId,
    webhook_id: webhook.id,
    flag_id: null,
    environment_id: null,
    before: before && auditedWebhook(before),
    after: after && {
      ...auditedWebhook(after),
      ...(before && { changed_fields: changedFields(before, after) }),
    },
    changed_at: now.toISOString(),
  };
}

function actionOf(before: Webhook | null, after: Webhook | null): AuditRecorded["action"] {
  if (before === null) return "webhook_created";
  return after === null ? "webhook_deleted" : "webhook_changed";
}

function auditedWebhook(webhook: Webhook): Record<string, unknown> {
  return {
    name: webhook.name,
    url: maskedUrl(webhook.url),
    events: webhook.events,
    enabled: webhook.enabled,
    has_secret: webhook.secret !== null,
  };
}

/** The masked URL and `has_secret` can be the same before and after a change. */
function changedFields(before: Webhook, after: Webhook): string[] {
  const fields = ["name", "url", "events", "enabled", "secret"] as const;
  return fields.filter((field) => before[field] !== after[field]);
}

/**
 * Returns the URL without user info and query, and with each segment of the path as `***`. The URLs of chat systems
 * contain their secret in the path.
 */
export function maskedUrl(text: string): string {
  const { protocol, host, pathname } = new URL(text);
  return `${protocol}//${host}${pathname.replaceAll(/[^/]+/gu, "***")}`;
}
