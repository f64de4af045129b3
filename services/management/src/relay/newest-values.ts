import type { UnsentRow } from "./unsent-rows.ts";

export type NewestValue = {
  row: UnsentRow;
  /** Ids of the rows with older values of the same entry. */
  overtaken: number[];
};

/** Returns the newest value of each entry, in the order of the rows. */
export function newestValues(rows: readonly UnsentRow[]): NewestValue[] {
  const newest = new Map<string, NewestValue>();
  for (const row of rows) {
    const before = newest.get(row.subject);
    const overtaken = before === undefined ? [] : [...before.overtaken, before.row.id];
    // Deleted first, so that the entry is at the place of its newest value.
    newest.delete(row.subject);
    newest.set(row.subject, { row, overtaken });
  }
  return [...newest.values()];
}
