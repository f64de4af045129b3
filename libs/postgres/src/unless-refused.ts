import { isRefusal, type Refusal } from "@halyard/service";
import type { Sql } from "./connect.ts";
import type { Transaction } from "./transaction.ts";

/** Runs the work in a transaction. A refusal rolls it back, so that nothing is stored of a rejected request. */
export async function unlessRefused<T extends object>(
  sql: Sql,
  work: (tx: Transaction) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  try {
    return await sql.begin(async (tx) => {
      const result = await work(tx);
      if (isRefusal(result)) throw new RolledBack(result);
      return result;
    });
  } catch (error) {
    if (error instanceof RolledBack) return error.refusal;
    throw error;
  }
}

/** Carries a refusal out of the transaction. */
class RolledBack extends Error {
  override name = "RolledBack";
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super("rolled back");
    this.refusal = refusal;
  }
}
