import { checkMatches, createProblem, namesTag, type Problem } from "@halyard/http";
import type { Schedule, ScheduleScope } from "./schedule.ts";

/** The conditions of a request about the schedule that is pending. */
export type Conditions = {
  ifMatch?: readonly string[] | undefined;
  ifNoneMatch?: string | undefined;
};

export function pathOf({ flagId, environmentId }: Pick<Schedule, "flagId" | "environmentId">) {
  return `/api/v1/flags/${flagId}/environments/${environmentId}/schedule`;
}

/** Returns the entity tag of a schedule: its id, because the times of a schedule never change. */
export function tagOf({ id }: Pick<Schedule, "id">): string {
  return `"${id}"`;
}

/** Checks the conditions of a request. A schedule that has ended, for example because it was applied, is not pending. */
export function checkPending(
  { ifMatch, ifNoneMatch }: Conditions,
  pendingId: string | undefined,
  scope: ScheduleScope,
): Problem | undefined {
  const present = pendingId === undefined ? undefined : tagOf({ id: pendingId });
  const subject = `the pending schedule of ${pathOf(scope)}`;
  const problem = checkMatches(ifMatch, present, subject);
  if (problem !== undefined || present === undefined || ifNoneMatch === undefined) return problem;
  if (!namesTag(ifNoneMatch, present)) return undefined;
  return createProblem(
    "CONFLICT_003",
    `If-None-Match names ${subject}, which is ${present}. Read that again, then send the request again.`,
    { etag: present },
  );
}
