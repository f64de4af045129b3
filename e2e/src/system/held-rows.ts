import { eventually } from "@halyard/testing";
import type postgres from "postgres";

/** A row that a test keeps locked, so that whoever wants to change it is brought to a stand there. */
export type HeldRow = {
  /** Waits until so many want the row. */
  awaitWaiters(count?: number): Promise<void>;
  /** Ends the statements that wait for it, as PostgreSQL does when it finds that their client is gone. */
  endWaiters(): Promise<void>;
  release(): Promise<void>;
};

export async function holdRow(
  sql: postgres.Sql,
  table:
    | "management.flags"
    | "scheduler.scheduled_changes"
    | "webhooks.webhooks"
    | "webhooks.deliveries",
  id: string,
): Promise<HeldRow> {
  // Those who want the row are of the service whose table it is.
  const role = `${table.split(".")[0]}_runtime`;
  const connection = await sql.reserve();
  await connection`begin`;
  const held = await connection`select from ${sql(table)} where id = ${id} for update`;
  if (held.count !== 1) throw new Error(`${table} has no ${id}`);
  return {
    async awaitWaiters(count = 1) {
      await eventually(async () => (await lockWaiters(sql, role)).length >= count, {
        because: `${count} wait for the row of ${table}`,
      });
    },
    async endWaiters() {
      for (const pid of await lockWaiters(sql, role))
        await sql`select pg_terminate_backend(${pid})`;
    },
    async release() {
      await connection`commit`;
      connection.release();
    },
  };
}

/** Of the processes that use this database; each test file has one of its own. */
async function lockWaiters(sql: postgres.Sql, role: string): Promise<number[]> {
  const rows = await sql<{ pid: number }[]>`
    select pid from pg_stat_activity
    where datname = current_database() and usename = ${role} and wait_event_type = 'Lock'`;
  return rows.map(({ pid }) => pid);
}
