import type { ScheduleAction, ScheduleState } from "@halyard/contracts";

/** Where a schedule applies: a flag, in one environment of its project. */
export type SchedulePlace = {
  organizationId: string;
  projectId: string;
  environmentId: string;
  flagId: string;
};

/** Changes of one flag in one environment, one or two of them. */
export type Schedule = SchedulePlace & {
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
