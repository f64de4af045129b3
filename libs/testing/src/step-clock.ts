import type postgres from "postgres";

/**
 * Sets the one clock by which the replicas of a service go, the database's, forwards or backwards from
 * what it really is.
 */
export async function stepClock(
  admin: postgres.Sql,
  schema: "scheduler" | "usage",
  byMs: number,
): Promise<void> {
  await admin.unsafe(
    `create or replace function ${schema}.present_time() returns timestamptz language sql volatile
     as 'select clock_timestamp() + interval ''${byMs} milliseconds'''`,
  );
}
