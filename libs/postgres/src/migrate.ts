import { fileURLToPath } from "node:url";
import { runner } from "node-pg-migrate";
import pg from "pg";
import { moveRightsOfFormerRole } from "./move-rights.ts";
import { doctorRole } from "./provision.ts";
import { withClient } from "./with-client.ts";

/**
 * Migrates the schema of a service with the numbered SQL files in a directory. Each file runs in its own transaction,
 * as the owner role. A lock lets only one process migrate at a time. From release 0.2.0 on, migrations only add to the
 * schema, so that the previous release works during a rolling upgrade.
 */
export async function migrate(options: {
  ownerUrl: string;
  schema: string;
  directory: string;
}): Promise<readonly string[]> {
  // With a URL, the library would not wait until its connection is closed, and would crash if it was lost.
  const applied = await withClient(options.ownerUrl, async (dbClient) => {
    await moveRightsOfFormerRole(dbClient, options.schema);
    const migrated = await runner({
      dbClient,
      dir: options.directory,
      schema: options.schema,
      migrationsSchema: options.schema,
      migrationsTable: "migrations",
      direction: "up",
      singleTransaction: false,
      advisoryLockMode: "wait",
      // The caller receives the names of the files, or the error.
      log: () => undefined,
      verbose: false,
    });
    await showToDoctor(dbClient, options.schema);
    return migrated;
  });
  return applied.map((migration) => migration.name);
}

/** Lets `npm run doctor` read which migrations were applied, if the setup has made its role. */
async function showToDoctor(client: pg.Client, schema: string): Promise<void> {
  const { rowCount } = await client.query("select from pg_roles where rolname = $1", [doctorRole]);
  if (rowCount === 0) return;
  const table = `${pg.escapeIdentifier(schema)}.migrations`;
  await client.query(`grant select on ${table} to ${pg.escapeIdentifier(doctorRole)}`);
}

/** The command `src/migrate.ts` of a service: migrates its schema to the current version. */
export async function runMigrations(options: {
  schema: string;
  service: string;
  /** URL of the command. */
  at: string;
  readOwnerUrl: () => string;
}): Promise<void> {
  const directory = fileURLToPath(new URL("../migrations", options.at));
  const applied = await migrate({ ...options, ownerUrl: options.readOwnerUrl(), directory });
  process.stdout.write(`${options.service}: ${applied.join(", ") || "nothing to do"}\n`);
}
