import type { Sql, Transaction } from "@halyard/postgres";
import { isRefusal, type Refusal } from "@halyard/service";

/**
 * Does something in a transaction, all of which is taken back when it ends in a refusal; so nothing is
 * remembered of what was refused.
 */
export async function unlessRefused<T extends object>(
  sql: Sql,
  work: (tx: Transaction) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  try {
    const { done } = await sql.begin(async (tx) => {
      const result = await work(tx);
      if (isRefusal(result)) throw new RolledBack(result);
      return { done: result };
    });
    return done as T;
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
