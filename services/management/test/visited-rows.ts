import type { Sql, Transaction } from "@halyard/postgres";

/** Returns the result of statements and the number of rows of a table that they visited. */
export async function visitedRows<T>(
  sql: Pick<Sql, "begin">,
  table: string,
  work: (tx: Transaction) => Promise<T>,
): Promise<{ result: T; visited: number }> {
  return sql.begin(async (tx) => {
    const before = await visitsOf(tx, table);
    const result = await work(tx);
    return { result, visited: (await visitsOf(tx, table)) - before };
  });
}

/**
 * Returns the number of rows that scans of the table and its indexes read in this transaction. The number may
 * include earlier transactions.
 */
async function visitsOf(tx: Transaction, table: string): Promise<number> {
  const [row] = await tx`
    select (seq_tup_read + idx_tup_fetch)::integer as rows
    from pg_stat_xact_user_tables where relname = ${table}`;
  return row?.rows;
}
