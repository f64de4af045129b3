import type { AuditEntry } from "../audit/audit-entry.ts";
import type { Occasion } from "../flags/occasion.ts";
import type { Environment } from "./environment.ts";

/** The entry of the audit log about an environment itself. */
export function environmentAudit(
  action: "environment_created" | "environment_renamed" | "environment_deleted",
  environment: Pick<Environment, "id" | "projectId">,
  { before, after }: Pick<AuditEntry, "before" | "after">,
  occasion: Occasion,
): AuditEntry {
  return {
    id: occasion.newId(),
    projectId: environment.projectId,
    environmentId: environment.id,
    action,
    cause: occasion.cause,
    actor: occasion.actor,
    apiKeyId: occasion.apiKeyId,
    before,
    after,
    changedAt: occasion.now,
  };
}
