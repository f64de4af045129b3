import { type ConnectOptions, connectPostgres, type Sql } from "./connect.ts";
import { createDatabaseHealth } from "./database-health.ts";

/** The database of a service, for as long as the service runs. */
export type Database = {
  sql: Sql;
  isUp(): boolean;
  close(): Promise<void>;
};

/** How long statements that are still under way at the end are waited for. */
const closePatienceSeconds = 5;

export function openDatabase(options: ConnectOptions): Database {
  const sql = connectPostgres(options);
  const health = createDatabaseHealth(sql);
  return {
    sql,
    isUp: health.isUp,
    async close() {
      health.stop();
      await sql.end({ timeout: closePatienceSeconds });
    },
  };
}
