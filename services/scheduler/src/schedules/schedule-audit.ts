import type { AuditRecorded } from "@halyard/contracts";
import type { SchedulePlace } from "./schedule.ts";

/** The user and the API key that set or cleared a schedule. */
export type Author = { userId: string; apiKeyId: string };

/** The times of a schedule. */
export type ScheduleTimes = { id: string; enableAt: Date | null; disableAt: Date | null };

/** Returns the message for the audit log about a schedule that was set, replaced or cleared. */
export function scheduleAudit(
  place: SchedulePlace,
  { before, after }: { before: ScheduleTimes | null; after: ScheduleTimes | null },
  { author, id, at }: { author: Author; id: string; at: Date },
): AuditRecorded {
  return {
    id,
    organization_id: place.organizationId,
    project_id: place.projectId,
    action: actionOf(before, after),
    service: "scheduler",
    user_id: author.userId,
    api_key_id: author.apiKeyId,
    webhook_id: null,
    flag_id: place.flagId,
    environment_id: place.environmentId,
    before: before && auditedTimes(before),
    after: after && auditedTimes(after),
    changed_at: at.toISOString(),
  };
}

function actionOf(
  before: ScheduleTimes | null,
  after: ScheduleTimes | null,
): AuditRecorded["action"] {
  if (after === null) return "schedule_cleared";
  return before === null ? "schedule_set" : "schedule_replaced";
}

function auditedTimes({ id, enableAt, disableAt }: ScheduleTimes): Record<string, unknown> {
  return {
    schedule_id: id,
    enable_at: enableAt?.toISOString() ?? null,
    disable_at: disableAt?.toISOString() ?? null,
  };
}
