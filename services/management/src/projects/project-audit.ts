import type { AuditEntry } from "../audit/audit-entry.ts";
import type { Occasion } from "../flags/occasion.ts";

/** The entry of the audit log about a project itself. */
export function projectAudit(
  action: "project_created" | "project_renamed" | "project_deleted",
  project: { id: string },
  { before, after }: Pick<AuditEntry, "before" | "after">,
  occasion: Occasion,
): AuditEntry {
  return {
    id: occasion.newId(),
    projectId: project.id,
    environmentId: null,
    action,
    cause: occasion.cause,
    actor: occasion.actor,
    apiKeyId: occasion.apiKeyId,
    before,
    after,
    changedAt: occasion.now,
  };
}
