import type { Sql } from "@halyard/postgres";
import { answerLifetimeHours } from "./answer-once.ts";

/** Deletes expired responses, up to a limit, and returns the number of deleted ones. */
export async function deleteExpiredAnswers(sql: Sql, limit: number): Promise<number> {
  const deleted = await sql`
    delete from idempotency_keys
    where ctid = any(array(
      select ctid from idempotency_keys
      where created_at < clock_timestamp() - ${answerLifetimeHours} * interval '1 hour'
      order by created_at
      limit ${limit}
    ))`;
  return deleted.count;
}
