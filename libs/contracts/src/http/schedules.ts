import { z } from "zod";
import { ScheduleAction } from "../schedule-messages.ts";
import { Id, IdParam, InstantIn, InstantOut } from "./fields.ts";
import { defineRoute } from "./route.ts";

/** Scheduled changes: a flag is switched on, off, or both, at times that are told beforehand. */
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
    .describe("How long after its time the change took effect; null until it has"),
});

export const Schedule = z.strictObject({
  id: Id,
  flag_id: Id,
  environment_id: Id,
  enable_at: InstantOut.nullable(),
  disable_at: InstantOut.nullable(),
  status: ScheduleState.describe(
    "`pending` until no change of the schedule is, then the state of its last change",
  ),
  changes: z.array(ScheduledChange).describe("In the order of their times"),
  created_at: InstantOut,
  created_by: Id,
  cancelled_at: InstantOut.nullable().describe(
    "When the schedule became `cancelled`; null unless it is",
  ),
  cancelled_by: Id.nullable().describe(
    "Who cleared or replaced it. Null when it is not cancelled, or its flag was deleted",
  ),
});
export type Schedule = z.infer<typeof Schedule>;

/** Far in the future, so that the example works for as long as this release is used. */
const scheduleExample = {
  enable_at: "2099-01-31T09:00:00Z",
  disable_at: "2099-02-14T18:30:00+01:00",
};

const needsTime = "must have enable_at, disable_at or both";

/** A time that is null is none. */
const hasTime = {
  anyOf: ["enable_at", "disable_at"].map((field) => ({
    required: [field],
    properties: { [field]: { not: { type: "null" } } },
  })),
  description: needsTime,
};

/** That each time lies ahead is checked against the clock, and that they differ with it. */
export const SetSchedule = z
  .strictObject({
    enable_at: InstantIn.nullable()
      .optional()
      .meta({
        description:
          "When the flag is switched on: in the future, before the year 10000, and not at `disable_at`. Null, or absent, not at all",
        examples: [scheduleExample.enable_at],
      }),
    disable_at: InstantIn.nullable()
      .optional()
      .meta({
        description:
          "When the flag is switched off, before or after `enable_at`. Null, or absent, not at all",
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
    "Give `enable_at`, `disable_at` or both, in either order: a window on, or a window off. It replaces the pending schedule of the flag in this environment; when this has answered, nothing of the earlier one will happen any more. A change that is just being made is waited for, 5 seconds at most. Beyond the schema, each time must be in the future and before the year 10000, and the two must differ.",
  body: SetSchedule,
  example: scheduleExample,
  idempotent: true,
  success: { status: 201, description: "The schedule", body: Schedule },
  errors: ["SERVER_002"],
});

export const getSchedule = defineRoute({
  ...shared,
  operationId: "getSchedule",
  method: "GET",
  path: schedule,
  params: Params,
  summary: "Read the latest schedule of a flag in an environment, also when it is done",
  success: { status: 200, description: "The schedule", body: Schedule },
});

export const clearSchedule = defineRoute({
  ...shared,
  operationId: "clearSchedule",
  method: "DELETE",
  path: schedule,
  params: Params,
  summary: "Cancel what is scheduled for a flag in an environment",
  description:
    "Also answered when nothing is. Afterwards nothing of the schedule will happen any more; a change that is just being made is waited for, 5 seconds at most.",
  success: { status: 204, description: "Nothing is scheduled" },
  errors: ["SERVER_002"],
});

export const listSchedules = defineRoute({
  ...shared,
  operationId: "listSchedules",
  method: "GET",
  path: "/api/v1/schedules",
  summary: "List the project's schedules, the newest first",
  description:
    "Pending ones and, for 90 days, those that are done. `status=pending` lists what is still to come.",
  query: z.strictObject({
    status: ScheduleState.optional(),
    flag_id: IdParam.optional(),
    environment_id: IdParam.optional(),
    limit: z.int().min(1).max(1000).optional(),
    cursor: z.string().max(400).optional(),
  }),
  success: {
    status: 200,
    description: "A page of schedules, 100 of them unless `limit` says otherwise",
    body: z.strictObject({ schedules: z.array(Schedule), next_cursor: z.string().nullable() }),
  },
});
