import type postgres from "postgres";

/** The one clock by which schedulers go: the database's, which a test may set. */
export async function presentTime(sql: postgres.Sql): Promise<Date> {
  const [row] = await sql<[{ now: Date }]>`select scheduler.present_time() as now`;
  return row.now;
}
