import { type ConnectOptions, connectPostgres, type Sql } from "./connect.ts";

export type Database = {
  sql: Sql;
  /** Returns the result of a health check that runs every second, independently of probes. */
  isUp(): boolean;
  close(): Promise<void>;
};

const healthCheckIntervalMs = 1_000;
/** Time without a response after which PostgreSQL counts as unavailable. */
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
  let isChecking = false;

  async function check(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    // The cause is not logged here, because other queries report it.
    const answered = sql`select 1`.then(
      () => true,
      () => false,
    );
    const late = setTimeout(() => {
      up = false;
    }, timeoutMs);
    up = await answered;
    clearTimeout(late);
    isChecking = false;
  }

  void check();
  const timer = setInterval(() => void check(), healthCheckIntervalMs);
  return {
    isUp: () => up,
    stop: () => clearInterval(timer),
  };
}

/** Returns a text that changes when PostgreSQL is restarted, or when the database or this schema is replaced. */
export async function identifyDatabase(sql: Sql): Promise<string> {
  const [row] = await sql<[{ id: string }]>`
    select pg_postmaster_start_time() || ' ' || 'migrations'::regclass::oid as id`;
  return row.id;
}
