import { randomUUID } from "node:crypto";
import { urlFor } from "@halyard/postgres";
import postgres from "postgres";
import { testBackends } from "./backends.ts";
import { roles, type Schema, schemas } from "./roles.ts";
import type { RuntimeUrls } from "./template-database.ts";

/** The database of one test file, with the empty schemas of all services. */
export type TestDatabase = {
  /** URL with a superuser. */
  adminUrl: string;
  /** URLs with the runtime roles of the services. */
  runtimeUrls: RuntimeUrls;
  drop(): Promise<void>;
};

export async function createTestDatabase(): Promise<TestDatabase> {
  const { postgresAdminUrl, templateDatabase } = testBackends();
  const database = `halyard_test_${randomUUID().replaceAll("-", "")}`;
  // Copying files takes less than half the time of the default, which writes every page to the WAL.
  await asAdmin(postgresAdminUrl, async (sql) => {
    await sql`create database ${sql(database)} template ${sql(templateDatabase)} strategy = file_copy`;
  });
  const adminUrl = new URL(postgresAdminUrl);
  adminUrl.pathname = `/${database}`;
  return {
    adminUrl: adminUrl.href,
    runtimeUrls: Object.fromEntries(
      schemas.map((schema) => [
        schema,
        urlFor(postgresAdminUrl, database, `${schema}_service`, roles[schema].runtimePassword),
      ]),
    ) as RuntimeUrls,
    drop: () =>
      asAdmin(postgresAdminUrl, async (sql) => {
        await sql`drop database if exists ${sql(database)} with (force)`;
      }),
  };
}

/** Connects as a superuser, with the search path of a service. */
export function connectAsSuperuser(adminUrl: string, schema: Schema): postgres.Sql {
  return postgres(adminUrl, {
    max: 4,
    // PostgreSQL writes timestamps in JSON in the time zone of the session.
    connection: { search_path: schema, TimeZone: "UTC" },
    onnotice: () => undefined,
  });
}

async function asAdmin(url: string, work: (sql: postgres.Sql) => Promise<void>): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}
