import type { Schedule, ScheduledChange } from "../api/schema.d.ts";
import { dayText, instantText, type Reader, timeText } from "../ui/dates.ts";

/** The times of a schedule, as instants. */
export type Times = { enableAt: Date | null; disableAt: Date | null };
/** Returns a time in UTC, with its day if that differs from the day of the reader: "Sun 23 Nov, 23:30 UTC". */
export function utcBeside(instant: Date, reader: Reader): string {
  const utc = inUtc(reader);
  const isSameDay = dayText(instant, utc) === dayText(instant, reader);
  return `${isSameDay ? timeText(instant, utc) : instantText(instant, utc)} UTC`;
}

export const inUtc = (reader: Reader): Reader => ({ ...reader, zone: "UTC" });

/** Returns whether the reader's clock shows UTC at all these instants. */
const isUtc = (instants: readonly Date[], reader: Reader) =>
  instants.every((instant) => instantText(instant, reader) === instantText(instant, inUtc(reader)));

/**
 * Says what a schedule will do: "On from Mon 24 Nov, 09:00 to 18:00, your time (08:00–17:00 UTC)". Returns undefined
 * without a time.
 */
export function describeTimes({ enableAt, disableAt }: Times, reader: Reader): string | undefined {
  const [start, end] = [enableAt, disableAt]
    .filter((instant) => instant !== null)
    .toSorted((a, b) => a.getTime() - b.getTime());
  if (start === undefined) return undefined;
  const word = start === enableAt ? "On" : "Off";
  const local = spanText(start, end, reader, " to ");
  const instants = end === undefined ? [start] : [start, end];
  if (isUtc(instants, reader)) return `${word} from ${local} UTC`;
  return `${word} from ${local}, your time (${utcSpanText(start, end, reader)} UTC)`;
}

function spanText(start: Date, end: Date | undefined, reader: Reader, joint: string): string {
  const from = instantText(start, reader);
  if (end === undefined) return from;
  const isSameDay = dayText(start, reader) === dayText(end, reader);
  return `${from}${joint}${isSameDay ? timeText(end, reader) : instantText(end, reader)}`;
}

/** Returns the span in UTC. The days are left out if the local text names the only one. */
function utcSpanText(start: Date, end: Date | undefined, reader: Reader): string {
  const utc = inUtc(reader);
  const days = [start, end ?? start].flatMap((instant) => [
    dayText(instant, reader),
    dayText(instant, utc),
  ]);
  if (new Set(days).size > 1) return spanText(start, end, utc, "–");
  return [start, ...(end === undefined ? [] : [end])]
    .map((instant) => timeText(instant, utc))
    .join("–");
}

const timeOrNull = (text: string | null) => (text === null ? null : new Date(text));

export const timesOf = (schedule: Pick<Schedule, "enable_at" | "disable_at">): Times => ({
  enableAt: timeOrNull(schedule.enable_at),
  disableAt: timeOrNull(schedule.disable_at),
});

/** Returns what is still to happen, without the changes that have ended. */
export function remainingTimes({ changes }: Pick<Schedule, "changes">): Times {
  const at = (action: ScheduledChange["action"]) =>
    changes.find((change) => change.action === action && change.state === "pending")?.at ?? null;
  return { enableAt: timeOrNull(at("enable")), disableAt: timeOrNull(at("disable")) };
}

/** Returns the positions of the switch that times bring, in any order. */
export const positionsOf = ({ enableAt, disableAt }: Times): boolean[] => [
  ...(enableAt === null ? [] : [true]),
  ...(disableAt === null ? [] : [false]),
];

/** Says that the first change has no effect, because the flag has its value already. */
export function withoutEffect({ enableAt, disableAt }: Times, isOn: boolean): string | undefined {
  const first =
    disableAt === null || (enableAt !== null && enableAt < disableAt) ? enableAt : disableAt;
  if (first === null || (first === enableAt) !== isOn) return undefined;
  return `The flag is ${isOn ? "on" : "off"} already. Unless that changes before then, nothing happens at this time.`;
}

const minuteMs = 60_000;

/** Returns how late a change took effect: "12 ms late", "1.4 s late", "3 min late". */
export function latenessText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, ms)} ms late`;
  if (ms < minuteMs) return `${(ms / 1_000).toFixed(1)} s late`;
  if (ms < 60 * minuteMs) return `${Math.round(ms / minuteMs)} min late`;
  return `${Math.round(ms / (60 * minuteMs))} h late`;
}

/** Says what became of a change. */
export function outcomeText({ state, lateness_ms: lateness }: ScheduledChange): string {
  switch (state) {
    case "applied":
      return lateness === null ? "Applied" : `Applied ${latenessText(lateness)}`;
    case "cancelled":
      return "Cancelled";
    case "failed":
      return "Failed";
    case "pending":
      return "Pending";
  }
}

export const actionText = (action: ScheduledChange["action"]): string =>
  action === "enable" ? "On" : "Off";
