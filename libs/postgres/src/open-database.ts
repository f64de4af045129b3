import { type ConnectOptions, connectPostgres, type Sql } from "./connect.ts";

/** The database of a service, for as long as the service runs. */
export type Database = {
  sql: Sql;
  /** Whether PostgreSQL answers, asked every second rather than at each probe. */
  isUp(): boolean;
  close(): Promise<void>;
};

const askEveryMs = 1_000;
/** A server that says nothing for so long cannot be worked with, whatever becomes of the connection. */
const patienceMs = 2_000;

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
    // That it is away is the answer; the queries that need it report why.
    const answered = sql`select 1`.then(
      () => true,
      () => false,
    );
    const late = setTimeout(() => {
      up = false;
    }, patienceMs);
    up = await answered;
    clearTimeout(late);
    asking = false;
  }

  void ask();
  const timer = setInterval(() => void ask(), askEveryMs);
  return {
    isUp: () => up,
    stop: () => clearInterval(timer),
  };
}
