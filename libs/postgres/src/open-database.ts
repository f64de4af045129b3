import { type ConnectOptions, connectPostgres, type Sql } from "./connect.ts";

/** The database of a service, for as long as the service runs. */
export type Database = {
  sql: Sql;
  /** Returns the result of a query that runs every second, not at each probe. */
  isUp(): boolean;
  close(): Promise<void>;
};

const healthCheckIntervalMs = 1_000;
/** Time without an answer after which PostgreSQL counts as unavailable. */
const timeoutMs = 2_000;

export function openDatabase(options: ConnectOptions): Database {
  const sql = connectPostgres(options);
  const health = watchHealth(sql);
  return {
    sql,
    isUp: health.isUp,
    async close() {
      health.stop();
      await sql.end();
    },
  };
}

function watchHealth(sql: Sql) {
  let up = false;
  let asking = false;

  async function ask(): Promise<void> {
    if (asking) return;
    asking = true;
    // Other queries report the cause.
    const answered = sql`select 1`.then(
      () => true,
      () => false,
    );
    const late = setTimeout(() => {
      up = false;
    }, timeoutMs);
    up = await answered;
    clearTimeout(late);
    asking = false;
  }

  void ask();
  const timer = setInterval(() => void ask(), healthCheckIntervalMs);
  return {
    isUp: () => up,
    stop: () => clearInterval(timer),
  };
}
