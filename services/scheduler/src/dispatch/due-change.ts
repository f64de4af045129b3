import type { ScheduleAction, ScheduleDue } from "@halyard/contracts";
import type { SchedulePlace } from "../schedules/schedule.ts";

/** A change whose time has come, with all that management needs to make it. */
export type DueChange = SchedulePlace & {
  id: string;
  scheduleId: string;
  action: ScheduleAction;
  dueAt: Date;
  /** On whose behalf it is made. */
  userId: string;
};

/** What management is told. */
export function dueMessage(change: DueChange): ScheduleDue {
  return {
    id: change.id,
    schedule_id: change.scheduleId,
    organization_id: change.organizationId,
    project_id: change.projectId,
    flag_id: change.flagId,
    environment_id: change.environmentId,
    action: change.action,
    due_at: change.dueAt.toISOString(),
    user_id: change.userId,
  };
}
