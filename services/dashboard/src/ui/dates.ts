import { pageLocale } from "./locale.ts";

/** Time zone and locale of a displayed time. The defaults are the browser's zone and the page's locale. */
type Place = { zone?: string | undefined; locale?: string | undefined };

const formats = new Map<string, Intl.DateTimeFormat>();

/** Formats a time. Formats are cached, because creating one costs more than using it. */
export function formatted(
  instant: Date,
  options: Intl.DateTimeFormatOptions,
  { zone, locale = pageLocale }: Place = {},
): string {
  const key = JSON.stringify([locale, zone, options]);
  const known = formats.get(key);
  const format = known ?? new Intl.DateTimeFormat(locale, { ...options, timeZone: zone });
  if (known === undefined) formats.set(key, format);
  return format.format(instant);
}

/** The style of a time of day that has seconds only where they are not zero. */
const clockOf = (instant: Date) => (instant.getUTCSeconds() === 0 ? "short" : "medium");

/** Returns the time of day without seconds. */
export const clockText = (instant: Date, place?: Place): string =>
  formatted(instant, { timeStyle: "short" }, place);

export const timeText = (instant: Date, place?: Place): string =>
  formatted(instant, { timeStyle: clockOf(instant) }, place);

/** Returns the date and the time of day. */
export const localTime = (instant: Date, place?: Place): string =>
  formatted(instant, { dateStyle: "medium", timeStyle: clockOf(instant) }, place);

export const utcTime = (instant: Date): string => `${localTime(instant, { zone: "UTC" })} UTC`;

/** A place and the current time. Texts omit the current year. */
export type Reader = Place & { now: Date };

/** Returns the day, with its year unless it is the current one: "Mon, Nov 24". */
export function dayText(instant: Date, reader: Reader): string {
  const year = (at: Date) => formatted(at, { year: "numeric" }, reader);
  const isThisYear = year(instant) === year(reader.now);
  const day = { weekday: "short", month: "short", day: "numeric" } as const;
  return formatted(instant, isThisYear ? day : { ...day, year: "numeric" }, reader);
}

/** Returns the day and the time of day: "Mon, Nov 24, 9:00 AM". */
export const instantText = (instant: Date, reader: Reader): string =>
  `${dayText(instant, reader)}, ${timeText(instant, reader)}`;

const relative = new Intl.RelativeTimeFormat(pageLocale, { numeric: "auto" });

const units = [
  { unit: "year", seconds: 31_536_000 },
  { unit: "month", seconds: 2_592_000 },
  { unit: "day", seconds: 86_400 },
  { unit: "hour", seconds: 3_600 },
  { unit: "minute", seconds: 60 },
] as const;

/** Returns a time relative to now, such as "3 minutes ago" or "in 2 days". */
export function relativeTime(instant: Date, now: Date): string {
  const seconds = (instant.getTime() - now.getTime()) / 1000;
  const found = units.find((unit) => Math.abs(seconds) >= unit.seconds);
  if (found === undefined) return seconds > 5 ? "in a moment" : "just now";
  return relative.format(Math.trunc(seconds / found.seconds), found.unit);
}
