import postgres from "postgres";
import { scramVerifier } from "./scram-verifier.ts";
import { splitTls } from "./tls.ts";

/**
 * Prepares a database for a service: one schema, owned by a role that migrates, and a runtime role
 * that gets only what the migrations grant it. Neither role sees another service's schema. Running
 * it again changes nothing but the passwords. It takes a superuser's address, or that of a role that
 * may create roles and databases; no service ever holds that address.
 */
export type ProvisionedService = { ownerUrl: string; runtimeUrl: string };

const duplicateDatabase = "42P04";

export async function provisionService(options: {
  adminUrl: string;
  database: string;
  /** In `snake_case` or plain: it becomes the schema's and the roles' name. */
  service: string;
  ownerPassword: string;
  runtimePassword: string;
}): Promise<ProvisionedService> {
  const { adminUrl, database, service } = options;
  const owner = `${service}_owner`;
  const runtime = `${service}_runtime`;
  await inDatabase(adminUrl, undefined, async (sql) => {
    await ensureRole(sql, owner, options.ownerPassword);
    await ensureRole(sql, runtime, options.runtimePassword);
    for (const role of [owner, runtime])
      await sql`alter role ${sql(role)} set search_path = ${sql(service)}`;
    await joinRole(sql, owner);
    await ensureDatabase(sql, database);
  });
  await inDatabase(adminUrl, database, async (sql) => {
    await sql`revoke all on schema public from public`;
    await sql`revoke temporary on database ${sql(database)} from public`;
    await sql`grant connect on database ${sql(database)} to ${sql(owner)}, ${sql(runtime)}`;
    await sql`create schema if not exists ${sql(service)} authorization ${sql(owner)}`;
    await sql`grant usage on schema ${sql(service)} to ${sql(runtime)}`;
  });
  return {
    ownerUrl: urlFor(adminUrl, database, owner, options.ownerPassword),
    runtimeUrl: urlFor(adminUrl, database, runtime, options.runtimePassword),
  };
}

/** The address of the same server for another database and role. */
export function urlFor(adminUrl: string, database: string, role: string, password: string): string {
  const url = new URL(adminUrl);
  url.username = role;
  url.password = password;
  url.pathname = `/${database}`;
  return url.href;
}

async function inDatabase(
  adminUrl: string,
  database: string | undefined,
  work: (sql: postgres.Sql) => Promise<void>,
): Promise<void> {
  const { url, tls } = splitTls(adminUrl);
  const sql = postgres(url, {
    max: 1,
    ssl: tls.mode === "off" ? false : { rejectUnauthorized: tls.mode === "verified", ca: tls.ca },
    onnotice: () => undefined,
    ...(database === undefined ? {} : { database }),
  });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}

/** The statement takes no parameters, so PostgreSQL itself quotes the verifier of the password. */
async function ensureRole(sql: postgres.Sql, role: string, password: string): Promise<void> {
  const [existing] = await sql`select 1 from pg_roles where rolname = ${role}`;
  const verb = existing === undefined ? "create" : "alter";
  const [quoted] = await sql<[{ statement: string }]>`
    select format('%s role %I login password %L', ${verb}::text, ${role}::text, ${scramVerifier(password)}::text)
      as statement`;
  await sql.unsafe(quoted.statement);
}

/** A role that is no superuser can make a schema only for a role that it is a member of. */
async function joinRole(sql: postgres.Sql, role: string): Promise<void> {
  const [self] = await sql`select rolsuper from pg_roles where rolname = current_user`;
  if (self?.rolsuper !== true) await sql`grant ${sql(role)} to current_user`;
}

async function ensureDatabase(sql: postgres.Sql, database: string): Promise<void> {
  const [existing] = await sql`select 1 from pg_database where datname = ${database}`;
  if (existing !== undefined) return;
  try {
    await sql`create database ${sql(database)}`;
  } catch (error) {
    // Another process created it a moment before.
    if (!(error instanceof postgres.PostgresError) || error.code !== duplicateDatabase) throw error;
  }
}
