import type { UsageDays } from "../api/schema.d.ts";
import { addDays, daysOf, monthOf } from "./months.ts";

export type Day = UsageDays["days"][number];

/** Complete days whose average is the expected number of requests of a day. */
export const paceDays = 7;

/** Minimum expected share of the limit for the outlook "tight". */
const tightShare = 0.9;

export type Projection = {
  today: string;
  /** Requests of the month so far. */
  used: number;
  /** Expected requests of a day. */
  pace: number;
  /** Complete days behind `pace`. */
  measuredDays: number;
  /** Expected requests of the whole month. */
  total: number;
  /** The expected day of reaching the limit, if any. */
  reachedOn: string | undefined;
  outlook: "unlimited" | "enough" | "tight" | "exceeds" | "reached";
};

/**
 * Projects the requests of the current month from the average of the last complete days. `days` ends with today, and
 * should begin `paceDays` before the month. The first day with requests may have begun long before its first request, so
 * it is not complete. Returns undefined until one day is complete.
 */
export function projectMonth(
  { days, known_since: knownSince }: UsageDays,
  limit: number | null,
): Projection | undefined {
  const today = days.at(-1);
  if (today === undefined || knownSince === null) return undefined;
  const from = addDays(today.date, -paceDays);
  const measured = days.filter(
    ({ date }) => date >= from && date > knownSince && date < today.date,
  );
  if (measured.length === 0) return undefined;
  const pace = sumOf(measured) / measured.length;
  const month = monthOf(today.date);
  const soFar = days.filter(({ date }) => monthOf(date) === month);
  const used = sumOf(soFar);
  const rows = expectedDays(month, soFar, pace);
  const total = Math.round(sumOf(soFar) + rows.reduce((sum, { expected }) => sum + expected, 0));
  const reachedOn = limit === null ? undefined : dayOfLimit(rows, limit);
  return {
    today: today.date,
    used,
    pace,
    measuredDays: measured.length,
    total,
    reachedOn,
    outlook: outlookOf({ used, total, limit }),
  };
}

const sumOf = (days: readonly Day[]): number =>
  days.reduce((sum, { requests }) => sum + requests, 0);

function outlookOf(month: {
  used: number;
  total: number;
  limit: number | null;
}): Projection["outlook"] {
  const { used, total, limit } = month;
  if (limit === null) return "unlimited";
  if (used >= limit) return "reached";
  if (total > limit) return "exceeds";
  return total >= limit * tightShare ? "tight" : "enough";
}

export type ExpectedDay = Day & { expected: number };

/**
 * Returns every day of a month with its requests, and the further requests that are expected at a pace: for the rest of
 * today and for later days. `days` ends with today, or with the end of a past month.
 */
export function expectedDays(
  month: string,
  days: readonly Day[],
  pace: number,
): readonly ExpectedDay[] {
  const known = new Map(days.map(({ date, requests }) => [date, requests]));
  const last = days.at(-1)?.date ?? "";
  return daysOf(month).map((date) => {
    const requests = known.get(date) ?? 0;
    return { date, requests, expected: date < last ? 0 : Math.max(0, pace - requests) };
  });
}

function dayOfLimit(rows: readonly ExpectedDay[], limit: number): string | undefined {
  let total = 0;
  return rows.find(({ requests, expected }) => {
    total += requests + expected;
    return total >= limit;
  })?.date;
}
