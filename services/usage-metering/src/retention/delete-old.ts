import type { Sql } from "@halyard/postgres";
import { statementOf } from "../counting/sum-tables.ts";

/**
 * Old rows that are deleted. Reports show 30 days of evaluations. A row of `edges` prevents that a message counts
 * twice; messages do not stay in their queue for so long, and at worst one message of an edge that was
 * disconnected counts twice. Requests by day are kept unless the operator sets a period.
 */
const hours = { column: "hour", before: "present_time() - ? * interval '1 day'" };
export const oldRows = {
  bulkAnswers: { deleteOldest: deletion("bulk_answer_hours", hours), keptDays: 31 },
  flagHours: { deleteOldest: deletion("flag_hours", hours), keptDays: 31 },
  edges: {
    deleteOldest: deletion("edges", { ...hours, column: "last_counted_at" }),
    keptDays: 40,
  },
  requestDays: {
    deleteOldest: deletion("request_days", {
      column: "day",
      before: "(present_time() at time zone 'UTC')::date - ?::integer",
    }),
  },
};

/** Returns a function that deletes a batch of the oldest rows, and returns their number. */
function deletion(table: string, { column, before }: { column: string; before: string }) {
  const statement = statementOf(`
    delete from ${table}
    where ctid = any(array(
      select ctid from ${table}
      where ${column} < ${before}
      order by ${column}
      limit ?
      for update skip locked
    ))`);
  return async (sql: Sql, { keptDays, atMost }: { keptDays: number; atMost: number }) =>
    (await sql(statement, keptDays, atMost)).count;
}
