import type { QuotaEntry } from "@halyard/contracts";

/**
 * Whether an entry says more than the one that is known: it has more of the same month, or is of a later
 * one. The present month, by the database's clock, is news over one that lies ahead as well: a clock that
 * was ahead for a while must not leave edges without the present month's figure until that one comes.
 */
export function isNews(
  entry: QuotaEntry,
  known: QuotaEntry | undefined,
  presentMonth: string | undefined,
): boolean {
  if (known === undefined) return true;
  if (known.month === entry.month) return known.requests < entry.requests;
  return known.month < entry.month || entry.month === presentMonth;
}
