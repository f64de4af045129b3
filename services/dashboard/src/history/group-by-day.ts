import type { AuditedChange } from "../api/schema.d.ts";
import { formatted } from "../ui/dates.ts";

type Day = { readonly label: string; readonly changes: readonly AuditedChange[] };

const dayOf = (instant: Date): string => formatted(instant, { dateStyle: "full" });

/**
 * Groups changes by the reader's days, in the order of the log. The log is ordered by arrival, so an entry can be a
 * little older than the next one; it begins no second group of its day.
 */
export function groupByDay(changes: readonly AuditedChange[], now: Date): Day[] {
  const today = dayOf(now);
  const yesterday = dayOf(new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1));
  const days = Map.groupBy(changes, ({ changed_at }) => dayOf(new Date(changed_at)));
  return [...days].map(([day, ofDay]) => {
    if (day === today) return { label: `Today, ${day}`, changes: ofDay };
    return { label: day === yesterday ? `Yesterday, ${day}` : day, changes: ofDay };
  });
}
