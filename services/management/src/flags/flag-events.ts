import {
  type EntryOf,
  type EventName,
  type FlagEvent,
  inSchemaOrder,
  type StateInEvent,
  type TargetingRule,
} from "@halyard/contracts";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";
import type { Flag, FlagEnvironment, FlagState, HistoryEntry } from "./flag.ts";

/** Returns the domain event of a change. It contains everything that a consumer needs. */
export function flagEvent(
  event: EventName,
  about: {
    flag: Flag;
    environment: FlagEnvironment;
    state: FlagState;
    before: FlagState | null;
    changes?: FlagEvent["changes"];
    at: Date;
  },
  context: ChangeContext,
): FlagEvent {
  const { flag, environment } = about;
  return {
    id: context.newId(),
    event,
    timestamp: about.at.toISOString(),
    version: flag.version,
    organization_id: flag.organizationId,
    project_id: flag.projectId,
    flag: {
      id: flag.id,
      key: flag.key,
      name: flag.name,
      description: flag.description,
      type: flag.type,
    },
    environment: { id: environment.id, name: environment.name },
    state: stateInEvent(about.state),
    state_before: about.before === null ? null : stateInEvent(about.before),
    ...(about.changes === undefined ? {} : { changes: about.changes }),
    triggered_by: { id: context.actor.id, email: context.actor.email },
    cause: context.cause,
  };
}

function stateInEvent(state: FlagState): StateInEvent {
  return {
    enabled: state.enabled,
    rollout_percentage: state.rolloutPercentage,
    targeting_rules: inSchemaOrder(state.targetingRules),
  };
}

/** Returns the snapshot entry of a flag in one environment, which edges evaluate. */
export function flagEntry(
  flag: { id: string; organizationId: string; projectId: string; key: string },
  state: {
    environmentId: string;
    enabled: boolean;
    rolloutPercentage: number;
    targetingRules: readonly TargetingRule[];
    version: number;
    updatedAt: Date;
  },
): EntryOf<"flag"> {
  const { organizationId } = flag;
  const { environmentId } = state;
  return {
    address: { kind: "flag", organizationId, environmentId, flagId: flag.id },
    value: {
      kind: "flag",
      organization_id: organizationId,
      project_id: flag.projectId,
      environment_id: environmentId,
      flag_id: flag.id,
      key: flag.key,
      enabled: state.enabled,
      rollout_percentage: state.rolloutPercentage,
      targeting_rules: [...state.targetingRules],
      version: state.version,
      committed_at: state.updatedAt.toISOString(),
    },
  };
}

/** Returns the history entry of a change to a state. */
export function historyEntry(
  state: FlagState,
  context: Pick<ChangeContext, "cause" | "newId"> & { actor: { id: string } },
): HistoryEntry {
  return {
    id: context.newId(),
    flagId: state.flagId,
    environmentId: state.environmentId,
    enabled: state.enabled,
    rolloutPercentage: state.rolloutPercentage,
    targetingRules: state.targetingRules,
    changeType: context.cause,
    changedBy: context.actor.id,
    changedAt: state.updatedAt,
  };
}

/** Returns the audit entry of a change to a flag. */
export function flagAudit(
  context: ChangeContext,
  flag: Flag,
  change: Pick<AuditEntry, "action" | "before" | "after"> & { environmentId: string | null },
): AuditEntry {
  const { id: flagId, key: flagKey, projectId, updatedAt: changedAt } = flag;
  return auditEntry(context, { projectId, flagId, flagKey, changedAt, ...change });
}

/** Returns the settings of a flag as the audit log represents them. */
export function auditedSettings(flag: Flag): Record<string, unknown> {
  return { name: flag.name, description: flag.description, type: flag.type };
}

export function auditedState(state: FlagState): Record<string, unknown> {
  return stateInEvent(state);
}
