import { formatted } from "../ui/dates.ts";

/** Days and months in UTC, as the API writes them: `2027-01-31` and `2027-01`. */

const dayMs = 24 * 60 * 60 * 1000;

const dayOf = (instant: number): string => new Date(instant).toISOString().slice(0, 10);
const startOf = (date: string): number => Date.parse(`${date}T00:00:00Z`);

export const monthOf = (date: string): string => date.slice(0, 7);
export const firstDayOf = (month: string): string => `${month}-01`;
export const addDays = (date: string, days: number): string => dayOf(startOf(date) + days * dayMs);

function addMonths(month: string, months: number): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return dayOf(Date.UTC(year, number - 1 + months, 1)).slice(0, 7);
}

export const lastDayOf = (month: string): string => addDays(firstDayOf(addMonths(month, 1)), -1);

export function daysOf(month: string): readonly string[] {
  const count = Number(lastDayOf(month).slice(8));
  return Array.from({ length: count }, (_, index) => addDays(firstDayOf(month), index));
}

/** Months that the usage page offers. */
const maxMonths = 24;

/** Returns the months with stored requests, the current one first. */
export function monthsSince(knownSince: string | null, current: string): readonly string[] {
  const months = [current];
  const first = knownSince === null ? current : monthOf(knownSince);
  for (let month = addMonths(current, -1); month >= first; month = addMonths(month, -1)) {
    if (months.length === maxMonths) break;
    months.push(month);
  }
  return months;
}

const format = (options: Intl.DateTimeFormatOptions) => (date: string) =>
  formatted(new Date(startOf(date)), options, { zone: "UTC" });

export const longDay = format({ day: "numeric", month: "long" });
export const fullDay = format({ weekday: "short", day: "numeric", month: "long" });
export const datedDay = format({ day: "numeric", month: "long", year: "numeric" });
const monthAndYear = format({ month: "long", year: "numeric" });
export const monthName = (month: string): string => monthAndYear(firstDayOf(month));
