import type postgres from "postgres";

/** The one clock by which schedulers go: the database's, which a test may set. */
export async function presentTime(sql: postgres.Sql): Promise<Date> {
  const [row] = await sql<[{ now: Date }]>`select scheduler.present_time() as now`;
  return row.now;
}

/** Sets it forwards or backwards, for all schedulers at once, from what it really is. */
export async function stepClock(sql: postgres.Sql, byMs: number): Promise<void> {
  await sql.unsafe(
    `create or replace function scheduler.present_time() returns timestamptz language sql volatile
     as 'select clock_timestamp() + interval ''${byMs} milliseconds'''`,
  );
}
