import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * Messages between the scheduler and management about a scheduled change that is due. Both contain the id of the
 * change, so that a duplicate has no effect.
 */
export const ScheduleAction = z.enum(["enable", "disable"]);
export type ScheduleAction = z.infer<typeof ScheduleAction>;

const change = {
  /** Id of the change, not of its schedule. It is also the message id. */
  id: z.uuid(),
  schedule_id: z.uuid(),
};

/** `schedule.due`: a request to switch a flag in one environment on behalf of a user. */
export const ScheduleDue = z.object({
  ...change,
  organization_id: z.uuid(),
  project_id: z.uuid(),
  flag_id: z.uuid(),
  environment_id: z.uuid(),
  action: ScheduleAction,
  due_at: z.string().meta({ format: "date-time" }),
  user_id: z.uuid(),
});
export type ScheduleDue = z.infer<typeof ScheduleDue>;

/**
 * `schedule.resolved`: the outcome of a scheduled change. A change is also `applied` if the flag was already in that
 * state, and `cancelled` if the flag was deleted. A `failed` change has a reason.
 */
export const ScheduleResolved = z.object({
  ...change,
  outcome: z.enum(["applied", "cancelled", "failed"]),
  /** Time at which the change took effect; null unless it was applied. */
  applied_at: z.string().meta({ format: "date-time" }).nullable(),
  reason: z.string().nullable(),
});
export type ScheduleResolved = z.infer<typeof ScheduleResolved>;

export const checkScheduleDue = compileCheck(ScheduleDue);
export const checkScheduleResolved = compileCheck(ScheduleResolved);
