import pg from "pg";
import { scramVerifier } from "./scram-verifier.ts";
import { withClient } from "./with-client.ts";

/**
 * Database URLs of a provisioned service. Each service has one schema, owned by a role that migrates it, and a runtime
 * role with only the rights that the migrations grant. Neither role can access the schema of another service.
 */
export type ProvisionedService = { ownerUrl: string; runtimeUrl: string };

const duplicateDatabase = "42P04";

/**
 * Prepares a database for a service. Running it again changes only the passwords. It needs the URL of a superuser, or
 * of a role that may create roles and databases. Services never receive this URL.
 */
export async function provisionService(options: {
  adminUrl: string;
  database: string;
  /** Name of the service in `snake_case`, which is also the name of the schema and the prefix of the roles. */
  service: string;
  ownerPassword: string;
  runtimePassword: string;
}): Promise<ProvisionedService> {
  const { adminUrl, database, service } = options;
  const owner = `${service}_owner`;
  const runtime = `${service}_service`;
  const name = pg.escapeIdentifier;
  await inDatabase(adminUrl, undefined, async (client) => {
    await ensureRole(client, owner, options.ownerPassword);
    await ensureRole(client, runtime, options.runtimePassword);
    for (const role of [owner, runtime])
      await client.query(`alter role ${name(role)} set search_path = ${name(service)}`);
    await joinRole(client, owner);
    await ensureDatabase(client, database);
  });
  await inDatabase(adminUrl, database, async (client) => {
    for (const statement of [
      "revoke all on schema public from public",
      `revoke temporary on database ${name(database)} from public`,
      `grant connect on database ${name(database)} to ${name(owner)}, ${name(runtime)}`,
      `create schema if not exists ${name(service)} authorization ${name(owner)}`,
      `grant usage on schema ${name(service)} to ${name(runtime)}`,
    ])
      await client.query(statement);
  });
  return {
    ownerUrl: urlFor(adminUrl, database, owner, options.ownerPassword),
    runtimeUrl: urlFor(adminUrl, database, runtime, options.runtimePassword),
  };
}

/** The role of `npm run doctor`. Migrations grant it what it may read: no secret, and nothing about users. */
export const doctorRole = "halyard_doctor";

/** Prepares the role of `npm run doctor`, and returns the URL of its database. It comes before the migrations. */
export async function provisionDoctor(options: {
  adminUrl: string;
  database: string;
  /** The schemas of all services. */
  schemas: readonly string[];
  password: string;
}): Promise<string> {
  const { adminUrl, database, schemas, password } = options;
  const name = pg.escapeIdentifier;
  await inDatabase(adminUrl, database, async (client) => {
    await ensureRole(client, doctorRole, password);
    await client.query(`grant connect on database ${name(database)} to ${name(doctorRole)}`);
    for (const schema of schemas)
      await client.query(`grant usage on schema ${name(schema)} to ${name(doctorRole)}`);
  });
  return urlFor(adminUrl, database, doctorRole, password);
}

/** Returns the URL of the same server for another database and role. */
export function urlFor(adminUrl: string, database: string, role: string, password: string): string {
  const url = new URL(adminUrl);
  url.username = role;
  url.password = password;
  url.pathname = `/${database}`;
  return url.href;
}

function inDatabase(
  adminUrl: string,
  database: string | undefined,
  work: (client: pg.Client) => Promise<void>,
): Promise<void> {
  const url = new URL(adminUrl);
  if (database !== undefined) url.pathname = `/${database}`;
  return withClient(url.href, work);
}

/** Creates or alters a role. The statement accepts no parameters, so PostgreSQL itself quotes the password verifier. */
async function ensureRole(client: pg.Client, role: string, password: string): Promise<void> {
  const existing = await client.query("select 1 from pg_roles where rolname = $1", [role]);
  const verb = existing.rows.length === 0 ? "create" : "alter";
  const quoted = await client.query<{ statement: string }>(
    "select format('%s role %I login password %L', $1::text, $2::text, $3::text) as statement",
    [verb, role, scramVerifier(password)],
  );
  for (const { statement } of quoted.rows) await client.query(statement);
}

/** Makes the current user a member of a role. Only a superuser can create a schema for a role without membership. */
async function joinRole(client: pg.Client, role: string): Promise<void> {
  const self = await client.query<{ rolsuper: boolean }>(
    "select rolsuper from pg_roles where rolname = current_user",
  );
  if (self.rows[0]?.rolsuper !== true)
    await client.query(`grant ${pg.escapeIdentifier(role)} to current_user`);
}

async function ensureDatabase(client: pg.Client, database: string): Promise<void> {
  const existing = await client.query("select 1 from pg_database where datname = $1", [database]);
  if (existing.rows.length > 0) return;
  try {
    await client.query(`create database ${pg.escapeIdentifier(database)}`);
  } catch (error) {
    // Another process created it concurrently.
    if (!(error instanceof pg.DatabaseError) || error.code !== duplicateDatabase) throw error;
  }
}
