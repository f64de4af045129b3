import type { Schedule, ScheduledChange } from "../api/schema.d.ts";
import { dayText, instantText, type Reader } from "../ui/dates.ts";
import { actionText } from "./schedule-text.ts";

/** A change of a schedule, at the time at which the timeline shows it. */
export type TimelineEntry = { schedule: Schedule; change: ScheduledChange; at: Date };

/** Returns the changes that are still to come, the next first. */
export function comingEntries(schedules: readonly Schedule[]): readonly TimelineEntry[] {
  return entriesOf(schedules, ({ state }) => state === "pending").toSorted(
    (a, b) => a.at.getTime() - b.at.getTime(),
  );
}

/** Returns the changes that have ended, the latest first. */
export function endedEntries(schedules: readonly Schedule[]): readonly TimelineEntry[] {
  return entriesOf(schedules, ({ state }) => state !== "pending").toSorted(
    (a, b) => b.at.getTime() - a.at.getTime(),
  );
}

function entriesOf(
  schedules: readonly Schedule[],
  isShown: (change: ScheduledChange) => boolean,
): readonly TimelineEntry[] {
  return schedules.flatMap((schedule) =>
    schedule.changes
      .filter(isShown)
      .map((change) => ({ schedule, change, at: timeOf(schedule, change) })),
  );
}

/** Returns when a change took effect or was cancelled, otherwise when it is due. */
function timeOf(schedule: Schedule, change: ScheduledChange): Date {
  const ended = change.state === "cancelled" ? schedule.cancelled_at : change.applied_at;
  return new Date(ended ?? change.at);
}

type TimelineDay = { label: string; entries: readonly TimelineEntry[] };

const dayMs = 86_400_000;

/** Groups entries by the day of the reader, in their order. */
export function groupByDay(
  entries: readonly TimelineEntry[],
  reader: Reader,
): readonly TimelineDay[] {
  const groups = Map.groupBy(entries, ({ at }) => dayText(at, reader));
  const near = new Map(
    (
      [
        ["Yesterday", -dayMs],
        ["Today", 0],
        ["Tomorrow", dayMs],
      ] as const
    ).map(([name, offset]) => [dayText(new Date(reader.now.getTime() + offset), reader), name]),
  );
  return [...groups].map(([day, found]) => {
    const name = near.get(day);
    return { label: name === undefined ? day : `${name}, ${day}`, entries: found };
  });
}

/** Returns the next change of each flag in an environment in words: "On Mon, Nov 24, 9:00 AM". */
export function nextChanges(
  schedules: readonly Schedule[],
  environmentId: string,
  reader: Reader,
): ReadonlyMap<string, string> {
  const own = schedules.filter(({ environment_id: id }) => id === environmentId);
  // The earliest change of a flag is set last, so that it remains.
  const latestFirst = comingEntries(own).toReversed();
  return new Map(
    latestFirst.map(({ schedule, change, at }) => [
      schedule.flag_id,
      `${actionText(change.action)} ${instantText(at, reader)}`,
    ]),
  );
}

export type TimelineFilter = { text: string; environmentId: string | undefined };

/** Returns the schedules of an environment whose flag matches the text. */
export function filterSchedules(
  schedules: readonly Schedule[],
  { text, environmentId }: TimelineFilter,
  keyOf: (flagId: string) => string | undefined,
): readonly Schedule[] {
  const wanted = text.trim().toLowerCase();
  return schedules.filter(
    ({ environment_id, flag_id }) =>
      (environmentId === undefined || environment_id === environmentId) &&
      (keyOf(flag_id) ?? "").toLowerCase().includes(wanted),
  );
}
