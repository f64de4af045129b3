import { json, type Sql, type Transaction } from "@halyard/postgres";
import type { AuditEntry } from "./audit-entry.ts";

/**
 * Adds entries to the audit log in the transaction of their change. Returns the number of new entries: an entry whose
 * id exists is skipped.
 */
export async function insertAuditEntries(
  tx: Sql | Transaction,
  entries: readonly AuditEntry[],
): Promise<number> {
  if (entries.length === 0) return 0;
  const inserted = await tx`
    insert into changes (id, project_id, organization_id, environment_id, flag_id, flag_key, key_id, webhook_id,
      user_id, action, cause, actor_id, actor_email, api_key_id, state_before, state_after,
      changed_at)
    select id, "projectId", "organizationId", "environmentId", "flagId", "flagKey", "keyId", "webhookId",
      "userId", action, cause, (actor ->> 'id')::uuid, actor ->> 'email', "apiKeyId", before, after,
      "changedAt"
    from jsonb_to_recordset(${json(entries)}) as entry (
      id uuid, "projectId" uuid, "organizationId" uuid, "environmentId" uuid, "flagId" uuid,
      "flagKey" text, "keyId" text, "webhookId" uuid, "userId" uuid, action text, cause text,
      actor jsonb, "apiKeyId" text, before jsonb, after jsonb, "changedAt" timestamptz)
    on conflict (id) do nothing`;
  return inserted.count;
}
