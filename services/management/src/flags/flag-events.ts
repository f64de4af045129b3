import type { EntryOf, EventName, FlagEvent, State } from "@halyard/contracts";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";
import {
  type Flag,
  type FlagEnvironment,
  type StoredState,
  type HistoryEntry,
  settingsOf,
} from "./flag.ts";

/** Returns the domain event of a change. It contains everything that a consumer needs. */
export function flagEvent(
  event: EventName,
  about: {
    flag: Flag;
    environment: FlagEnvironment;
    state: StoredState;
    before: StoredState | null;
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
    flag: { id: flag.id, key: flag.key, ...settingsOf(flag) },
    environment: { id: environment.id, name: environment.name },
    state: about.state.content,
    state_before: about.before?.content ?? null,
    ...(about.changes === undefined ? {} : { changes: about.changes }),
    triggered_by: { id: context.actor.id, email: context.actor.email },
    cause: context.cause,
  };
}

/** Returns the snapshot entry of a flag in one environment, which edges evaluate. */
export function flagEntry(
  flag: { id: string; organizationId: string; projectId: string; key: string },
  state: { environmentId: string; content: State; version: number; updatedAt: Date },
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
      ...state.content,
      version: state.version,
      committed_at: state.updatedAt.toISOString(),
    },
  };
}

/** Returns the history entry of a change to a state. */
export function historyEntry(
  state: StoredState,
  context: Pick<ChangeContext, "cause" | "newId"> & { actor: { id: string } },
): HistoryEntry {
  return {
    id: context.newId(),
    flagId: state.flagId,
    environmentId: state.environmentId,
    content: state.content,
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
