import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * What the scheduler and management tell each other about a change that has come due. Both messages
 * carry the id of the change: however often one of them arrives, it takes effect once.
 */
export const ScheduleAction = z.enum(["enable", "disable"]);
export type ScheduleAction = z.infer<typeof ScheduleAction>;

const change = {
  /** The change, not the schedule that it belongs to. The message id too. */
  id: z.uuid(),
  schedule_id: z.uuid(),
};

/** `schedule.due`: switch this flag in this environment, on behalf of this user. */
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
 * `schedule.resolved`: what became of it. `applied` also where the flag was in that state already;
 * `cancelled` when the flag is gone; `failed`, with the reason, when it could not be processed.
 */
export const ScheduleResolved = z.object({
  ...change,
  outcome: z.enum(["applied", "cancelled", "failed"]),
  /** When it took effect; null unless it was applied. */
  applied_at: z.string().meta({ format: "date-time" }).nullable(),
  reason: z.string().nullable(),
});
export type ScheduleResolved = z.infer<typeof ScheduleResolved>;

export const checkScheduleDue = compileCheck(ScheduleDue);
export const checkScheduleResolved = compileCheck(ScheduleResolved);
