import type { TestDatabase } from "@halyard/testing";
import postgres from "postgres";

/**
 * Backs up and restores a test database, as an operator does. Both copies require a database without sessions, so
 * all connections are terminated and new ones are rejected for a moment.
 */
export function restorable({ adminUrl }: Pick<TestDatabase, "adminUrl">) {
  const { href, pathname } = new URL(adminUrl);
  const database = pathname.slice(1);
  const backup = `${database}_backup`;
  const server = new URL("/postgres", href).href;

  async function withoutSessions(work: (sql: postgres.Sql) => Promise<void>): Promise<void> {
    const sql = postgres(server, { max: 1, onnotice: () => undefined });
    try {
      await sql`alter database ${sql(database)} with allow_connections false`;
      await sql`
        select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = ${database}`;
      await work(sql);
      await sql`alter database ${sql(database)} with allow_connections true`;
    } finally {
      await sql.end();
    }
  }

  return {
    backUp: () =>
      withoutSessions(async (sql) => {
        await sql`drop database if exists ${sql(backup)}`;
        await sql`create database ${sql(backup)} template ${sql(database)}`;
      }),
    restore: () =>
      withoutSessions(async (sql) => {
        await sql`drop database ${sql(database)} with (force)`;
        await sql`create database ${sql(database)} template ${sql(backup)}`;
      }),
    async drop() {
      const sql = postgres(server, { max: 1, onnotice: () => undefined });
      await sql`drop database if exists ${sql(backup)} with (force)`;
      await sql.end();
    },
  };
}
