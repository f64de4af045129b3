import { isProblem, type Problem } from "@halyard/http";
import type { Sql, Transaction } from "@halyard/postgres";

/** Runs the work in a transaction. A problem rolls it back, so that a rejected request stores nothing. */
export async function rollBackOnProblem<T extends object>(
  sql: Sql,
  work: (tx: Transaction) => Promise<T | Problem>,
): Promise<T | Problem> {
  try {
    return await sql.begin(async (tx) => {
      const result = await work(tx);
      if (isProblem(result)) throw new RolledBack(result);
      return result;
    });
  } catch (error) {
    if (error instanceof RolledBack) return error.problem;
    throw error;
  }
}

/** Passes a problem out of the transaction. */
class RolledBack extends Error {
  override name = "RolledBack";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super("rolled back");
    this.problem = problem;
  }
}
