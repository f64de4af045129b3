import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "@halyard/postgres";
import { connectAsSuperuser, createTestDatabase, eventually } from "@halyard/testing";
import { afterAll, beforeEach, expect, it } from "@jest/globals";

/** Migrations that index a table while a service writes to it. */

const schema = "indexed";
const build = "create index concurrently entries_by_text on entries (text);";
const database = await createTestDatabase();
const writer = connectAsSuperuser(database.adminUrl, "scheduler");
const other = connectAsSuperuser(database.adminUrl, "scheduler");
const ownerUrl = database.adminUrl;
let directory: string;
afterAll(async () => {
  await Promise.all([writer.end(), other.end()]);
  await database.drop();
});

beforeEach(async () => {
  await other`drop schema if exists indexed cascade`;
  await other`create schema indexed`;
  directory = mkdtempSync(join(tmpdir(), "migrations-"));
  writeFileSync(join(directory, "0001_entries.sql"), "create table entries (text text);");
  await migrateAll();
});

const migrateAll = () => migrate({ ownerUrl, schema, directory });

function addIndex(): void {
  const lines = [
    "-- Without a transaction",
    "drop index concurrently if exists entries_by_text;",
    build,
  ];
  writeFileSync(join(directory, "0002_index.sql"), `${lines.join("\n")}\n`);
}

/** Runs the work while a transaction that has written is open, and the migration waits for it. */
async function whileIndexing<Result>(work: () => Promise<Result>) {
  addIndex();
  const { promise: written, resolve: end } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const transaction = writer.begin(async (tx) => {
    await tx`insert into indexed.entries values ('open')`;
    begin();
    await written;
  });
  await begun;
  const migrating = migrateAll().catch((error: Error) => error);
  const result = await eventually(isBuilding, {
    because: "the migration waits for the transaction",
  })
    .then(work)
    .finally(end);
  await transaction;
  return { result, migrated: await migrating };
}

/** Returns the ids of the processes of PostgreSQL that build the index. */
async function builders(): Promise<number[]> {
  const rows = await other<{ pid: number }[]>`
    select pid from pg_stat_activity
    where position(${build} in query) > 0 and wait_event_type = 'Lock' and datname = current_database()`;
  return rows.map(({ pid }) => pid);
}

const isBuilding = async () => (await builders()).length === 1;

const isValid = async () => {
  const rows = await other<{ valid: boolean }[]>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass('indexed.entries_by_text')`;
  return rows.map(({ valid }) => valid);
};

it("others can write while an index is built", async () => {
  const { migrated } = await whileIndexing(
    () => other`insert into indexed.entries values ('meanwhile')`,
  );
  expect(migrated).toEqual(["0002_index"]);
  expect(await isValid()).toEqual([true]);
});

it("another process that migrates waits for the index without holding it up", async () => {
  let second: Promise<unknown> | undefined;
  const { migrated } = await whileIndexing(async () => {
    second = migrateAll();
    await eventually(async () => {
      const [{ count }] = await other<[{ count: number }]>`
        select count(*)::integer from pg_stat_activity
        where query like '%pg_try_advisory_lock%' and pid <> pg_backend_pid()
          and datname = current_database()`;
      return count === 1;
    });
  });
  expect(migrated).toEqual(["0002_index"]);
  expect(await second).toEqual([]);
});

it("an index that was interrupted is built again", async () => {
  const { migrated } = await whileIndexing(async () => {
    for (const pid of await builders()) await other`select pg_terminate_backend(${pid})`;
    await eventually(async () => (await builders()).length === 0);
  });
  expect(migrated).toBeInstanceOf(Error);
  expect(await isValid()).toEqual([false]);
  expect(await migrateAll()).toEqual(["0002_index"]);
  expect(await isValid()).toEqual([true]);
});
