import {
  type AuditRecorded,
  parseInstant,
  type ScheduleAction,
  type ScheduleState,
  type SetSchedule,
  wholeDocument,
} from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/service";

/** Where a schedule applies: a flag, in one environment of its project. */
export type ScheduleScope = {
  organizationId: string;
  projectId: string;
  environmentId: string;
  flagId: string;
};

/** Changes of one flag in one environment, one or two of them. */
export type Schedule = ScheduleScope & {
  id: string;
  enableAt: Date | null;
  disableAt: Date | null;
  status: ScheduleState;
  createdAt: Date;
  /** The user on whose behalf the changes will be made. */
  createdBy: string;
  /** When its last change was cancelled, if it was. */
  cancelledAt: Date | null;
  /** Who cleared or replaced it; null also where its flag was deleted. */
  cancelledBy: string | null;
  /** In the order of their times. */
  changes: readonly ScheduledChange[];
};

export type ScheduledChange = {
  id: string;
  action: ScheduleAction;
  dueAt: Date;
  state: ChangeState;
  appliedAt: Date | null;
};

/**
 * The life of a change. It waits while the other change of its schedule comes first; is armed, which
 * is to come due at its time; is sent to management; and ends in one of the last three states. At
 * most one change of a flag in an environment is armed or sent, so they happen in their order.
 */
export type ChangeState = "waiting" | "armed" | "sent" | "applied" | "cancelled" | "failed";

/** What the world sees of it: whatever has not ended is pending. */
export function publicState(state: ChangeState): ScheduleState {
  return state === "waiting" || state === "armed" || state === "sent" ? "pending" : state;
}

/** The last instant that ISO 8601 writes with a year of four digits. */
const lastInstantMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * A new schedule: at least one time, each ahead of now, and two that differ, in either order. The
 * earlier change is armed, the later one waits for it.
 */
export function decideSchedule(
  scope: ScheduleScope,
  request: SetSchedule,
  context: { userId: string; now: Date; newId: () => string },
): Schedule | Problem {
  const times: { action: ScheduleAction; at: Date }[] = [];
  for (const action of ["enable", "disable"] as const) {
    const given = request[`${action}_at`] ?? undefined;
    if (given === undefined) continue;
    const at = readTime(`/${action}_at`, given, context.now);
    if ("rejected" in at) return at;
    times.push({ action, at });
  }
  const [first, second] = times.sort((one, other) => one.at.getTime() - other.at.getTime());
  if (first === undefined)
    return createProblem(
      "VALIDATION_001",
      `${wholeDocument} must have enable_at, disable_at or both.`,
    );
  if (first.at.getTime() === second?.at.getTime())
    return createProblem("VALIDATION_001", "/disable_at must differ from /enable_at.");

  const timeOf = (action: ScheduleAction) => times.find((time) => time.action === action)?.at;
  return {
    ...scope,
    id: context.newId(),
    enableAt: timeOf("enable") ?? null,
    disableAt: timeOf("disable") ?? null,
    status: "pending",
    createdAt: context.now,
    createdBy: context.userId,
    cancelledAt: null,
    cancelledBy: null,
    changes: times.map(
      ({ action, at }, index): ScheduledChange => ({
        id: context.newId(),
        action,
        dueAt: at,
        state: index === 0 ? "armed" : "waiting",
        appliedAt: null,
      }),
    ),
  };
}

/** The schema has seen to it that the text is an instant that exists. */
function readTime(field: string, text: string, now: Date): Date | Problem {
  const milliseconds = parseInstant(text);
  if (milliseconds === undefined || milliseconds > lastInstantMs)
    return createProblem("VALIDATION_001", `${field} must be before the year 10000.`);
  if (milliseconds <= now.getTime())
    return createProblem(
      "VALIDATION_001",
      `${field} must be in the future; it is ${now.toISOString()}.`,
    );
  return new Date(milliseconds);
}

/**
 * How long after its time a change took effect; null until it has. The two moments are told by two
 * machines, whose clocks may differ by a little, so a change that seems early counts as punctual.
 */
export function latenessMs(change: Pick<ScheduledChange, "appliedAt" | "dueAt">): number | null {
  if (change.appliedAt === null) return null;
  return Math.max(0, change.appliedAt.getTime() - change.dueAt.getTime());
}

/** The user and the API key that set or cleared a schedule. */
export type Author = { userId: string; apiKeyId: string };

/** The times of a schedule. */
export type ScheduleTimes = { id: string; enableAt: Date | null; disableAt: Date | null };

/** Returns the message for the audit log about a schedule that was set, replaced or cleared. */
export function scheduleAudit(
  scope: ScheduleScope,
  { before, after }: { before: ScheduleTimes | null; after: ScheduleTimes | null },
  { author, id, at }: { author: Author; id: string; at: Date },
): AuditRecorded {
  return {
    id,
    organization_id: scope.organizationId,
    project_id: scope.projectId,
    action: actionOf(before, after),
    service: "scheduler",
    user_id: author.userId,
    api_key_id: author.apiKeyId,
    webhook_id: null,
    flag_id: scope.flagId,
    environment_id: scope.environmentId,
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
