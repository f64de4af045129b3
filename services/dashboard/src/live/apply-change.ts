import type { QueryClient } from "@tanstack/react-query";
import type { AuditedChange } from "../api/schema.d.ts";
import { invalidateList } from "../flags/flag-queries.ts";

/** Query keys that depend on a change, beside the flag itself and the audit log. */
const subjects: Readonly<Partial<Record<AuditedChange["action"], string>>> = {
  key_issued: "keys",
  key_rotated: "keys",
  key_revoked: "keys",
  webhook_created: "webhooks",
  webhook_changed: "webhooks",
  webhook_deleted: "webhooks",
  schedule_set: "schedules",
  schedule_replaced: "schedules",
  schedule_cleared: "schedules",
};

/** Marks the queries that depend on a change as stale. Visible queries refetch immediately, the others when their page opens. */
export function invalidateFor(change: AuditedChange, client: QueryClient): void {
  void client.invalidateQueries({ queryKey: ["changes"] });
  const subject = subjects[change.action];
  if (subject !== undefined) void client.invalidateQueries({ queryKey: [subject] });
  if (change.flag_key !== null)
    void client.invalidateQueries({ queryKey: ["flag", change.flag_key] });
  // Flags have a state in every environment.
  if (change.action.startsWith("environment_")) {
    void invalidateList(client);
    void client.invalidateQueries({ queryKey: ["flag"] });
  }
  if (change.change_type === "scheduled")
    void client.invalidateQueries({ queryKey: ["schedules"] });
}

/** Returns whether a change alters the list of environments or the names in the session. */
export function changesScope({ action }: AuditedChange): boolean {
  return (
    action.startsWith("environment_") || action.startsWith("project_") || action.startsWith("user_")
  );
}
