import { z } from "zod";
import { ScheduleAction } from "../schedule-messages.ts";
import { Id, IdParam, InstantIn, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Schedules: a flag is switched on, off, or both, at given times. */
export const ScheduleState = z.enum(["pending", "applied", "cancelled", "failed"]);
export type ScheduleState = z.infer<typeof ScheduleState>;

export const ScheduledChange = z.strictObject({
  action: ScheduleAction,
  at: InstantOut,
  state: ScheduleState,
  applied_at: InstantOut.nullable(),
  lateness_ms: z
    .int()
    .nullable()
    .describe("Delay of the change after its time; null until the change takes effect"),
});

export const Schedule = z.strictObject({
  id: Id,
  flag_id: Id,
  environment_id: Id,
  enable_at: InstantOut.nullable(),
  disable_at: InstantOut.nullable(),
  status: ScheduleState.describe(
    "`pending` while any change of the schedule is pending, then the state of its last change",
  ),
  changes: z.array(ScheduledChange).describe("In the order of their times"),
  created_at: InstantOut,
  created_by: Id,
  cancelled_at: InstantOut.nullable().describe(
    "When the schedule was cancelled; null if it was not",
  ),
  cancelled_by: Id.nullable().describe(
    "The user who cleared or replaced the schedule. Null if it is not cancelled, or if its flag was deleted",
  ),
});
export type Schedule = z.infer<typeof Schedule>;

/** Times far in the future, so that the example stays valid. */
const scheduleExample = {
  enable_at: "2099-01-31T09:00:00Z",
  disable_at: "2099-02-14T18:30:00+01:00",
};

const needsTime = "must have enable_at, disable_at or both";

/** A time of null counts as absent. */
const hasTime = {
  anyOf: ["enable_at", "disable_at"].map((field) => ({
    required: [field],
    properties: { [field]: { not: { type: "null" } } },
  })),
  description: needsTime,
};

/** The scheduler also checks that each time is in the future and that the two differ. */
export const SetSchedule = z
  .strictObject({
    enable_at: InstantIn.nullable()
      .optional()
      .meta({
        description:
          "When the flag is switched on: a time in the future, before the year 10000, and different from `disable_at`. Not switched on if null or absent",
        examples: [scheduleExample.enable_at],
      }),
    disable_at: InstantIn.nullable()
      .optional()
      .meta({
        description:
          "When the flag is switched off, before or after `enable_at`. Not switched off if null or absent",
        examples: [scheduleExample.disable_at],
      }),
  })
  .meta({
    minProperties: 1,
    dependentSchemas: { enable_at: hasTime, disable_at: hasTime },
    description: needsTime,
  });
export type SetSchedule = z.infer<typeof SetSchedule>;

const schedule = "/api/v1/flags/:flagId/environments/:envId/schedule";
const Params = z.strictObject({ flagId: IdParam, envId: IdParam });
const shared = { service: "scheduler", access: "server_key", tag: "Schedules" } as const;

export const setSchedule = defineRoute({
  ...shared,
  operationId: "setSchedule",
  method: "POST",
  path: schedule,
  params: Params,
  summary: "Schedule changes of a flag in an environment",
  description:
    "Set `enable_at`, `disable_at` or both, in either order. The schedule replaces the pending schedule of the flag in this environment: after the response, no change of the replaced schedule takes effect. The request waits up to 5 seconds for a change that is being applied. The ETag of a schedule is its id. With `If-Match`, only this pending schedule is replaced; with `If-None-Match: *`, none is. A schedule that has ended is not pending. Otherwise the response is 412 and nothing changes. Beyond the schema, each time must be in the future and before the year 10000, and the two must differ. In a protected environment, a schedule can at most turn a flag off, if the protection permits that without an approval; use a change request with `apply_at` otherwise.",
  body: SetSchedule,
  example: scheduleExample,
  idempotent: true,
  conditional: true,
  unlessPresent: true,
  success: { status: 201, description: "The schedule", body: Schedule },
  errors: ["CONFLICT_003", "APPROVAL_001", "SERVER_002"],
});

export const getSchedule = defineRoute({
  ...shared,
  operationId: "getSchedule",
  method: "GET",
  path: schedule,
  params: Params,
  summary: "Read the latest schedule of a flag in an environment, even if it has ended",
  description: "The ETag is the id of the schedule.",
  tagged: true,
  success: { status: 200, description: "The schedule", body: Schedule },
});

export const clearSchedule = defineRoute({
  ...shared,
  operationId: "clearSchedule",
  method: "DELETE",
  path: schedule,
  params: Params,
  summary: "Cancel the pending schedule of a flag in an environment",
  description:
    "Succeeds even if no schedule is pending. With `If-Match`, only the schedule with this id is cancelled; if another one or none is pending, the response is 412. After the response, no change of the schedule takes effect. The request waits up to 5 seconds for a change that is being applied.",
  conditional: true,
  success: { status: 204, description: "Nothing is scheduled" },
  errors: ["CONFLICT_003", "SERVER_002"],
});

export const listSchedules = defineRoute({
  ...shared,
  operationId: "listSchedules",
  method: "GET",
  path: "/api/v1/schedules",
  summary: "List the project's schedules, newest first",
  description:
    "Lists pending schedules and, for 90 days, those that have ended. `status=pending` lists only pending schedules.",
  query: z.strictObject({
    status: ScheduleState.optional(),
    flag_id: IdParam.optional(),
    environment_id: IdParam.optional(),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description: "A page of schedules: 100 without `limit`",
    body: z.strictObject({ schedules: z.array(Schedule), next_cursor: z.string().nullable() }),
  },
});
