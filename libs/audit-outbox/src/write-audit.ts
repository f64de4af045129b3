import type { AuditRecorded } from "@halyard/contracts";
import { json, type Transaction } from "@halyard/postgres";

/**
 * Writes a change for the audit log to the outbox, in the transaction of the change. The table `audit_outbox` is in the
 * schema of the service.
 */
export async function writeAudit(tx: Transaction, message: AuditRecorded): Promise<void> {
  await tx`
    insert into audit_outbox (id, message)
    values (${message.id}, ${json(message)})`;
}
