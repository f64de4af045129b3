import type { Json, Transaction } from "@halyard/postgres";
import type { AuditEntry } from "./audit-entry.ts";

/** Adds to the audit log, in the transaction of the change that it tells of. */
export async function insertAuditEntries(
  tx: Transaction,
  entries: readonly AuditEntry[],
): Promise<void> {
  await tx`
    insert into changes (id, project_id, environment_id, key_id, action, cause, actor_id,
      actor_email, state_before, state_after, changed_at)
    select id, "projectId", "environmentId", "keyId", action, 'manual', (actor ->> 'id')::uuid,
      actor ->> 'email', before, after, "changedAt"
    from jsonb_to_recordset(${tx.json(entries as unknown as Json)}) as entry (
      id uuid, "projectId" uuid, "environmentId" uuid, "keyId" text, action text, actor jsonb,
      before jsonb, after jsonb, "changedAt" timestamptz)`;
}
