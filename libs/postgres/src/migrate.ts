import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type MigrationBuilder, PG_MIGRATE_LOCK_ID, runner } from "node-pg-migrate";
import pg from "pg";
import { moveRightsOfFormerRole } from "./move-rights.ts";
import { doctorRole } from "./provision.ts";
import { withClient } from "./with-client.ts";

/**
 * Migrates the schema of a service with the numbered SQL files in a directory, as the owner role. Each file runs in its
 * own transaction. A lock lets only one process migrate at a time. From release 0.2.0 on, migrations only add to the
 * schema, so that the previous release works during a rolling upgrade.
 *
 * A file that begins with `-- Without a transaction` runs statement by statement, because `create index concurrently`,
 * which does not block writes, needs that. After an interruption it runs again from its beginning, so it first drops an
 * unfinished index. Its statements end with a semicolon at the end of a line.
 */
export async function migrate(options: {
  ownerUrl: string;
  schema: string;
  directory: string;
}): Promise<readonly string[]> {
  // With a URL, the library would not wait until its connection is closed, and would crash if it was lost.
  const applied = await withClient(options.ownerUrl, async (dbClient) => {
    await lock(dbClient);
    await moveRightsOfFormerRole(dbClient, options.schema);
    const migrated = await runner({
      dbClient,
      dir: options.directory,
      schema: options.schema,
      migrationsSchema: options.schema,
      migrationsTable: "migrations",
      direction: "up",
      singleTransaction: false,
      noLock: true,
      migrationLoaderStrategies: [
        { extensions: [".sql"], loader: (paths) => Promise.all(paths.map(loadFile)) },
      ],
      // The caller receives the names of the files, or the error.
      log: () => undefined,
      verbose: false,
    });
    await showToDoctor(dbClient, options.schema);
    return migrated;
  });
  return applied.map((migration) => migration.name);
}

const lockPauseMs = 200;

/**
 * Waits until no other process migrates the database. The lock ends with the connection. A statement that waits for the
 * lock would hold up an index that the other process builds, which waits for all statements. So it tries again instead.
 */
async function lock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>(
      "select pg_try_advisory_lock($1) as locked",
      [PG_MIGRATE_LOCK_ID],
    );
    if (rows[0]?.locked) return;
    await pause(lockPauseMs);
  }
}

async function loadFile(path: string) {
  const text = await readFile(path, "utf8");
  const up = (builder: MigrationBuilder) => {
    if (!/^-- Without a transaction\b/.test(text)) return builder.sql(text);
    builder.noTransaction();
    for (const statement of text.split(/(?<=;)$/m)) if (statement.trim()) builder.sql(statement);
  };
  return { id: path, filePaths: [path], actions: { up } };
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
