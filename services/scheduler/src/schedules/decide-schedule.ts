import {
  parseInstant,
  type ScheduleAction,
  type SetSchedule,
  wholeDocument,
} from "@halyard/contracts";
import { type Refusal, refuse } from "@halyard/service";
import type { Schedule, ScheduledChange, SchedulePlace } from "./schedule.ts";

/** The last instant that ISO 8601 writes with a year of four digits. */
const lastInstantMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/**
 * A new schedule: at least one time, each ahead of now, and two that differ, in either order. The
 * earlier change is armed, the later one waits for it.
 */
export function decideSchedule(
  place: SchedulePlace,
  request: SetSchedule,
  occasion: { userId: string; now: Date; newId: () => string },
): Schedule | Refusal {
  const times: { action: ScheduleAction; at: Date }[] = [];
  for (const action of ["enable", "disable"] as const) {
    const given = request[`${action}_at`] ?? undefined;
    if (given === undefined) continue;
    const at = readTime(`/${action}_at`, given, occasion.now);
    if ("refused" in at) return at;
    times.push({ action, at });
  }
  const [first, second] = times.sort((one, other) => one.at.getTime() - other.at.getTime());
  if (first === undefined)
    return refuse("VALIDATION_001", `${wholeDocument} must have enable_at, disable_at or both.`);
  if (first.at.getTime() === second?.at.getTime())
    return refuse("VALIDATION_001", "/disable_at must differ from /enable_at.");

  const timeOf = (action: ScheduleAction) => times.find((time) => time.action === action)?.at;
  return {
    ...place,
    id: occasion.newId(),
    enableAt: timeOf("enable") ?? null,
    disableAt: timeOf("disable") ?? null,
    status: "pending",
    createdAt: occasion.now,
    createdBy: occasion.userId,
    cancelledAt: null,
    cancelledBy: null,
    changes: times.map(
      ({ action, at }, index): ScheduledChange => ({
        id: occasion.newId(),
        action,
        dueAt: at,
        state: index === 0 ? "armed" : "waiting",
        appliedAt: null,
      }),
    ),
  };
}

/** The schema has seen to it that the text is an instant that exists. */
function readTime(field: string, text: string, now: Date): Date | Refusal {
  const milliseconds = parseInstant(text);
  if (milliseconds === undefined || milliseconds > lastInstantMs)
    return refuse("VALIDATION_001", `${field} must be before the year 10000.`);
  if (milliseconds <= now.getTime())
    return refuse("VALIDATION_001", `${field} must be in the future; it is ${now.toISOString()}.`);
  return new Date(milliseconds);
}
