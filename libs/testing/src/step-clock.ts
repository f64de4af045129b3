import type postgres from "postgres";

/** Sets the clock of the database, which all replicas of a service use, forward or back from the real time. */
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
