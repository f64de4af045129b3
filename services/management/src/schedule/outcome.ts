import type { ScheduleDue, ScheduleResolved } from "@halyard/contracts";
import type { Verdict } from "@halyard/jetstream";

/** What became of a change that had come due, as it is kept and as the scheduler is told. */
export type Outcome = Omit<ScheduleResolved, "id" | "schedule_id">;

export const applied = (at: Date): Outcome => ({
  outcome: "applied",
  applied_at: at.toISOString(),
  reason: null,
});

export const cancelled = (reason: string): Outcome => ({
  outcome: "cancelled",
  applied_at: null,
  reason,
});

export const failed = (reason: string): Outcome => ({
  outcome: "failed",
  applied_at: null,
  reason,
});

export function resolvedMessage(due: ScheduleDue, outcome: Outcome): ScheduleResolved {
  return { id: due.id, schedule_id: due.schedule_id, ...outcome };
}

/** What failed is for somebody to look at. */
export function verdictOf({ outcome, reason }: Outcome): Verdict {
  return outcome === "failed" ? { setAside: reason ?? outcome } : "done";
}
