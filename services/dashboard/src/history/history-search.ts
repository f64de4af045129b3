import type { AuditedChange } from "../api/schema.d.ts";

export type Action = AuditedChange["action"];

/** The kinds of changes, as the filter names them. */
export const actionLabels: Readonly<Record<Action, string>> = {
  state: "State and rules of a flag",
  created: "Flag created",
  settings: "Settings of a flag",
  deleted: "Flag deleted",
  schedule_set: "Schedule set",
  schedule_replaced: "Schedule replaced",
  schedule_cleared: "Schedule cleared",
  webhook_created: "Webhook created",
  webhook_changed: "Webhook changed",
  webhook_deleted: "Webhook deleted",
  key_issued: "API key issued",
  key_rotated: "API key rotated",
  key_revoked: "API key revoked",
  environment_created: "Environment created",
  environment_renamed: "Environment renamed",
  environment_changed: "Environment changed",
  environment_deleted: "Environment deleted",
  project_created: "Project created",
  project_renamed: "Project renamed",
  project_deleted: "Project deleted",
  user_created: "User added",
  user_changed: "User changed",
  user_deleted: "User deleted",
  audience_created: "Audience created",
  audience_changed: "Audience changed",
  audience_list_changed: "List of an audience changed",
  audience_deleted: "Audience deleted",
  change_request_opened: "Change request opened",
  change_request_edited: "Change request edited",
  change_request_approved: "Change request approved",
  change_request_rejected: "Change request rejected",
  change_request_withdrawn: "Change request withdrawn",
  change_request_rebased: "Change request rebased",
  change_request_applied: "Change request applied",
  change_request_bypassed: "Approval bypassed",
  change_request_stale: "Change request stale",
  change_request_reopened: "Change request open again",
};

/** The filters of the history, which are in the address. Days are those of the reader's calendar. */
export type HistorySearch = {
  /** The id of a flag, because a deleted flag and its successor can have the same key. */
  flag?: string | undefined;
  /** The id of a user. */
  person?: string | undefined;
  action?: Action | undefined;
  from?: string | undefined;
  /** The last day, inclusive. */
  to?: string | undefined;
};

const idPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function readHistorySearch(search: Record<string, unknown>): HistorySearch {
  const { flag, person, action, from, to } = search;
  const id = (value: unknown) =>
    typeof value === "string" && idPattern.test(value) ? value : undefined;
  return {
    flag: id(flag),
    person: id(person),
    action:
      typeof action === "string" && Object.hasOwn(actionLabels, action)
        ? (action as Action)
        : undefined,
    from: dayFrom(from),
    to: dayFrom(to),
  };
}

function dayFrom(value: unknown): string | undefined {
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\d$/.test(value)) return undefined;
  return Number.isNaN(startOf(value).getTime()) ? undefined : value;
}

/** Returns the beginning of a day in the local time zone, or that of a later one. */
function startOf(day: string, later = 0): Date {
  const [year = 0, month = 0, date = 0] = day.split("-").map(Number);
  return new Date(year, month - 1, date + later);
}

/** Returns the filters as parameters of the API, whose `until` is exclusive. */
export function queryOf({ flag, person, action, from, to }: HistorySearch) {
  return {
    ...(flag !== undefined && { flag_id: flag }),
    ...(person !== undefined && { actor_id: person }),
    ...(action !== undefined && { action }),
    ...(from !== undefined && { since: startOf(from).toISOString() }),
    ...(to !== undefined && { until: startOf(to, 1).toISOString() }),
  };
}

export type ChangesQuery = ReturnType<typeof queryOf>;

export const isFiltered = (search: HistorySearch): boolean =>
  Object.keys(queryOf(search)).length > 0;
