import type { AuditedChange } from "@halyard/contracts";
import type { Actor, Cause } from "../flags/occasion.ts";

/** One line of a project's audit log as it is kept, whatever it is about. */
export type RecordedChange = {
  id: string;
  action: AuditedChange["action"];
  cause: Cause;
  flagId: string | null;
  flagKey: string | null;
  keyId: string | null;
  environmentId: string | null;
  actor: Actor;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  changedAt: Date;
};

/** The same as the API shows it. */
export function changeResource(change: RecordedChange): AuditedChange {
  return {
    id: change.id,
    action: change.action,
    change_type: change.cause,
    flag_id: change.flagId,
    flag_key: change.flagKey,
    key_id: change.keyId,
    environment_id: change.environmentId,
    actor: change.actor,
    before: change.before,
    after: change.after,
    changed_at: change.changedAt.toISOString(),
  };
}
