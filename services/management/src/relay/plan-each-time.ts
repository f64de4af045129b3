import type { Sql } from "@halyard/postgres";

/**
 * Runs a statement without a name, so that PostgreSQL plans it each time. A kept plan that was made for an almost
 * empty outbox would scan all of it, until the next ANALYZE.
 */
export async function planEachTime<Row extends object>(
  sql: Pick<Sql, "unsafe">,
  statement: string,
  parameters: readonly (string | number | readonly string[])[],
): Promise<Row[]> {
  return sql.unsafe<Row[]>(statement, [...parameters] as never[]);
}
