import type * as contract from "@halyard/contracts";
import { publicState, type Schedule, type ScheduledChange } from "./schedule.ts";

/** A schedule as the API shows it. */
export function scheduleResource(schedule: Schedule): contract.Schedule {
  return {
    id: schedule.id,
    flag_id: schedule.flagId,
    environment_id: schedule.environmentId,
    enable_at: schedule.enableAt?.toISOString() ?? null,
    disable_at: schedule.disableAt?.toISOString() ?? null,
    status: schedule.status,
    changes: schedule.changes.map((change) => ({
      action: change.action,
      at: change.dueAt.toISOString(),
      state: publicState(change.state),
      applied_at: change.appliedAt?.toISOString() ?? null,
      lateness_ms: latenessMs(change),
    })),
    created_at: schedule.createdAt.toISOString(),
    created_by: schedule.createdBy,
    cancelled_at: schedule.cancelledAt?.toISOString() ?? null,
    cancelled_by: schedule.cancelledBy,
  };
}

/**
 * How long after its time a change took effect; null until it has. The two moments are told by two
 * machines, whose clocks may differ by a little, so a change that seems early counts as punctual.
 */
export function latenessMs(change: Pick<ScheduledChange, "appliedAt" | "dueAt">): number | null {
  if (change.appliedAt === null) return null;
  return Math.max(0, change.appliedAt.getTime() - change.dueAt.getTime());
}
