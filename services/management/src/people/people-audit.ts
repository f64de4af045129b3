import type { OrganizationChange } from "@halyard/contracts";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";

export type PeopleAction = Exclude<
  OrganizationChange["action"],
  "user_created" | "user_changed" | "user_deleted"
>;

/**
 * Returns an entry for the audit log of an organization: what happened to the roles and sign-ins of a user, or to the
 * roles of a group. It contains no names and addresses, so that an erasure finds nothing in it.
 */
export function peopleAudit(
  action: PeopleAction,
  change: {
    organizationId: string;
    userId?: string;
    before?: Record<string, unknown>;
    after?: Record<string, unknown>;
  },
  context: ChangeContext,
): AuditEntry {
  return auditEntry(context, { before: null, after: null, ...change, action });
}
