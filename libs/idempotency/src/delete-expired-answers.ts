import type { Sql } from "@halyard/postgres";
import { answerLifetimeHours } from "./answer-once.ts";

/** Lets go of answers that are given no more, so many of them; answers how many those were. */
export async function deleteExpiredAnswers(sql: Sql, limit: number): Promise<number> {
  const forgotten = await sql`
    delete from idempotency_keys
    where ctid = any(array(
      select ctid from idempotency_keys
      where created_at < clock_timestamp() - ${answerLifetimeHours} * interval '1 hour'
      order by created_at
      limit ${limit}
    ))`;
  return forgotten.count;
}
