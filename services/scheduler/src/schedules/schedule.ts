import {
  type AuditRecorded,
  parseInstant,
  type ScheduleAction,
  type ScheduleState,
  type SetSchedule,
  type SignInMethod,
  wholeDocument,
} from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";

/** The scope of a schedule: a flag in one environment of its project. */
export type ScheduleScope = {
  organizationId: string;
  projectId: string;
  environmentId: string;
  flagId: string;
};

/** One or two scheduled changes of a flag in an environment. */
export type Schedule = ScheduleScope & {
  id: string;
  enableAt: Date | null;
  disableAt: Date | null;
  status: ScheduleState;
  createdAt: Date;
  /** The user on whose behalf the changes will be made. */
  createdBy: string;
  /** Time at which the last change was cancelled, or null. */
  cancelledAt: Date | null;
  /** The user who cleared or replaced the schedule. Null if its flag was deleted. */
  cancelledBy: string | null;
  /** Sorted by time. */
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
 * The state of a scheduled change. A change is `waiting` until the other change of its schedule has ended. It
 * is `armed` until its due time, then `sent` to management. It ends in one of the last three states. At most
 * one change of a flag in an environment is armed or sent, so the changes happen in order.
 */
export type ChangeState = "waiting" | "armed" | "sent" | "applied" | "cancelled" | "failed";

/** Returns the state in the API, where every change that has not ended is pending. */
export function publicState(state: ChangeState): ScheduleState {
  return state === "waiting" || state === "armed" || state === "sent" ? "pending" : state;
}

/** The last instant with a four-digit year in ISO 8601. */
const lastInstantMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * Returns a new schedule, or a problem. A schedule has one time, or two different times in either order, all in
 * the future. The earlier change is armed; the later change waits for it.
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

/** Parses and checks a time. The schema guarantees that the text is a valid instant. */
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
 * Returns the delay between a change's due time and its effect, or null while it has no effect. The two times
 * come from the clocks of two machines, which may differ slightly. A negative delay counts as 0.
 */
export function latenessMs(change: Pick<ScheduledChange, "appliedAt" | "dueAt">): number | null {
  if (change.appliedAt === null) return null;
  return Math.max(0, change.appliedAt.getTime() - change.dueAt.getTime());
}

/** The user who set or cleared a schedule, with the API key, or with the sign-in of the session. */
export type Author = { userId: string; apiKeyId: string | null; via?: SignInMethod | undefined };

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
    ...(author.via !== undefined && { via: author.via }),
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
