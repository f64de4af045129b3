import pg from "pg";
import { scramVerifier } from "./scram-verifier.ts";
import { withClient } from "./with-client.ts";

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

/** The address of the same server for another database and role. */
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

/** The statement takes no parameters, so PostgreSQL itself quotes the verifier of the password. */
async function ensureRole(client: pg.Client, role: string, password: string): Promise<void> {
  const existing = await client.query("select 1 from pg_roles where rolname = $1", [role]);
  const verb = existing.rows.length === 0 ? "create" : "alter";
  const quoted = await client.query<{ statement: string }>(
    "select format('%s role %I login password %L', $1::text, $2::text, $3::text) as statement",
    [verb, role, scramVerifier(password)],
  );
  for (const { statement } of quoted.rows) await client.query(statement);
}

/** A role that is no superuser can make a schema only for a role that it is a member of. */
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
    // Another process created it a moment before.
    if (!(error instanceof pg.DatabaseError) || error.code !== duplicateDatabase) throw error;
  }
}
