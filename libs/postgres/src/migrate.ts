import { runner } from "node-pg-migrate";
import { withClient } from "./with-client.ts";

/**
 * Brings a service's schema up to date with the numbered SQL files in a folder. Each file runs in a
 * transaction of its own, as the owner role; a lock lets only one process migrate at a time. Files
 * only ever expand what is there, so that the version before keeps working until it is gone.
 */
export async function migrate(options: {
  ownerUrl: string;
  schema: string;
  directory: string;
}): Promise<readonly string[]> {
  // Given an address, the library would not wait for the end of its connection, and would crash if that was lost.
  const applied = await withClient(options.ownerUrl, (dbClient) =>
    runner({
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
    }),
  );
  return applied.map((migration) => migration.name);
}
