import type * as contract from "@halyard/contracts";
import type { Webhook } from "./webhook.ts";

/** A webhook as the API shows it: of its secret only whether it has one. */
export function webhookResource(webhook: Webhook): contract.Webhook {
  return {
    id: webhook.id,
    project_id: webhook.projectId,
    name: webhook.name,
    url: webhook.url,
    events: webhook.events,
    enabled: webhook.enabled,
    has_secret: webhook.secret !== null,
    created_at: webhook.createdAt.toISOString(),
    updated_at: webhook.updatedAt.toISOString(),
  };
}
