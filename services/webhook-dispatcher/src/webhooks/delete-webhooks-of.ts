import type { Sql } from "@halyard/postgres";
import { deleteWebhook } from "./webhook-store.ts";

/** Deletes the webhooks of deleted projects, and cancels their deliveries. */
export async function deleteWebhooksOf(
  sql: Sql,
  projectIds: readonly string[],
  { newId, mayGoOn }: { newId: () => string; mayGoOn: () => boolean },
): Promise<void> {
  const webhooks = await sql<{ projectId: string; webhookId: string }[]>`
    select project_id as "projectId", id as "webhookId" from webhooks
    where project_id = any(${projectIds as string[]}::uuid[])`;
  for (const webhook of webhooks) {
    if (!mayGoOn()) return;
    const now = new Date();
    await deleteWebhook(sql, webhook, { author: "webhook-dispatcher", newId, now });
  }
}
