import type { UserKind, User as UserResource } from "@halyard/contracts";
import { createProblem } from "@halyard/http";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";

/** A user of an organization, to whom changes are attributed. */
export type User = {
  id: string;
  organizationId: string;
  kind: UserKind;
  email: string;
  name: string | null;
  /** The person linked to the user; null for a service user, and before the first sign-in. */
  personId: string | null;
  createdAt: Date;
};

export type UserAddress = { organizationId: string; userId: string };

export function userResource(user: User): UserResource {
  return {
    id: user.id,
    organization_id: user.organizationId,
    kind: user.kind,
    email: user.email,
    name: user.name,
    signs_in: user.personId !== null,
    created_at: user.createdAt.toISOString(),
  };
}

export const noSuchUser = createProblem(
  "NOT_FOUND_001",
  "There is no such user in this organization.",
);

export function userAudit(
  action: "user_created" | "user_changed" | "user_deleted",
  { before, after }: { before: User; after: null } | { before: User | null; after: User },
  context: ChangeContext,
): AuditEntry {
  const { id: userId, organizationId } = after ?? before;
  return auditEntry(context, {
    organizationId,
    userId,
    action,
    before: before && auditedUser(before),
    after: after && auditedUser(after),
  });
}

/** Returns a user as the audit log represents it. */
function auditedUser({ email, name }: User): Record<string, unknown> {
  return { email, name };
}
