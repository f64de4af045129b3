import type { AuditEntry } from "../audit/audit-entry.ts";
import type { HistoryEntry } from "./decision.ts";
import type { Flag, FlagState } from "./flag.ts";
import { stateInEvent } from "./flag-event.ts";
import type { Occasion } from "./occasion.ts";

/** The entries that a change leaves in the history of its state and in the project's audit log. */
export function historyEntry(
  state: FlagState,
  occasion: Pick<Occasion, "cause" | "newId"> & { actor: { id: string } },
): HistoryEntry {
  return {
    id: occasion.newId(),
    flagId: state.flagId,
    environmentId: state.environmentId,
    enabled: state.enabled,
    rolloutPercentage: state.rolloutPercentage,
    targetingRules: state.targetingRules,
    changeType: occasion.cause,
    changedBy: occasion.actor.id,
    changedAt: state.updatedAt,
  };
}

export function auditEntry(
  action: "created" | "settings" | "state" | "deleted",
  about: {
    flag: Flag;
    environmentId: string | null;
    before: Record<string, unknown> | null;
    after: Record<string, unknown> | null;
    at: Date;
  },
  occasion: Occasion,
): AuditEntry {
  return {
    id: occasion.newId(),
    projectId: about.flag.projectId,
    environmentId: about.environmentId,
    flagId: about.flag.id,
    flagKey: about.flag.key,
    action,
    cause: occasion.cause,
    actor: occasion.actor,
    apiKeyId: occasion.apiKeyId,
    before: about.before,
    after: about.after,
    changedAt: about.at,
  };
}

/** A flag's settings, and its state where it has one, as the audit log shows them. */
export function auditedSettings(flag: Flag): Record<string, unknown> {
  return { name: flag.name, description: flag.description, type: flag.type };
}

export function auditedState(state: FlagState): Record<string, unknown> {
  return stateInEvent(state);
}
