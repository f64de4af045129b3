import type { EvaluationsReported } from "@halyard/contracts";
import type { Sql, Transaction } from "@halyard/postgres";
import { readersOf, recordReaders } from "./count-readers.ts";
import { sumUpReports } from "./decide-sums.ts";
import { upsertRows } from "./sum-tables.ts";

/**
 * Counts reports in one transaction, and returns the number of those that had not been counted before. Ids and sums are
 * committed together, so a report that is delivered or sent again adds nothing. Of different reports with one id, the
 * first counts.
 */
export async function countReports(
  sql: Sql,
  reports: readonly EvaluationsReported[],
): Promise<number> {
  const byId = new Map<string, EvaluationsReported>();
  for (const report of reports) {
    const id = report.report_id.toLowerCase();
    if (!byId.has(id)) byId.set(id, report);
  }
  return sql.begin(async (tx) => {
    const { ids, now } = await markUncounted(tx, [...byId.keys()]);
    const counted = ids.flatMap((id) => byId.get(id) ?? []);
    const readers = readersOf(counted, now.getTime());
    // The statements are pipelined: one round trip.
    await Promise.all([
      ...[...sumUpReports(counted, now.getTime())].map(([table, rows]) =>
        rows.length > 0 ? upsertRows(tx, table, rows) : [],
      ),
      readers.length > 0 && recordReaders(tx, readers),
    ]);
    return counted.length;
  });
}

/**
 * Marks the reports that have not been counted, and returns their ids. A report of a concurrent transaction waits for
 * the end of that transaction. Rows are inserted in the order of their ids, so that transactions never deadlock.
 */
async function markUncounted(
  tx: Transaction,
  ids: readonly string[],
): Promise<{ ids: readonly string[]; now: Date }> {
  const marked = await tx<{ id: string; now: Date }[]>`
    insert into counted_reports (report_id, counted_at)
    select given.report_id, present_time()
    from unnest(${ids as string[]}::uuid[]) as given (report_id)
    order by given.report_id
    on conflict (report_id) do nothing
    returning report_id as id, counted_at as now`;
  return { ids: marked.map(({ id }) => id), now: marked[0]?.now ?? new Date(0) };
}
