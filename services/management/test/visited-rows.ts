import type { Sql, Transaction } from "@halyard/postgres";

/** Returns the result of statements, and how many rows of a table they visited. */
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

/** Rows that the transaction, and perhaps some before it, read by scans of the table or of its indexes. */
async function visitsOf(tx: Transaction, table: string): Promise<number> {
  const [row] = await tx`
    select (seq_tup_read + idx_tup_fetch)::integer as rows
    from pg_stat_xact_user_tables where relname = ${table}`;
  return row?.rows;
}
