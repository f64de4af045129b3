import { type AuditedChange, inSchemaOrder, type TargetingRule } from "@halyard/contracts";
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
    before: withOrderedRules(change.before),
    after: withOrderedRules(change.after),
    changed_at: change.changedAt.toISOString(),
  };
}

function withOrderedRules(state: Record<string, unknown> | null): Record<string, unknown> | null {
  if (state === null || !Array.isArray(state.targeting_rules)) return state;
  return { ...state, targeting_rules: inSchemaOrder(state.targeting_rules as TargetingRule[]) };
}
