import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connectPostgres, migrate } from "@halyard/postgres";
import { createTestDatabase, type TestDatabase, testBackends } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { findBreaks } from "../src/history/verification.ts";

/** Tests that the database links the history entries, and that the service's role cannot bypass the links. */
const migrations = fileURLToPath(new URL("../migrations", import.meta.url));
const flagId = randomUUID();
const [production, staging] = [randomUUID(), randomUUID()];

async function addEntry(
  sql: postgres.Sql,
  environmentId: string,
  more: Record<string, unknown> = {},
) {
  const id = randomUUID();
  await sql`insert into history ${sql({
    id,
    flag_id: flagId,
    environment_id: environmentId,
    enabled: true,
    rollout_percentage: 10,
    targeting_rules: sql.json([{ conditions: [], value: false }]),
    change_type: "manual",
    changed_by: randomUUID(),
    changed_at: new Date("2026-11-20T12:00:00.123Z"),
    ...more,
  })}`;
  return id;
}

/** Returns the history entries of the flag in an environment, in order. */
async function linksOf(sql: postgres.Sql, environmentId: string) {
  return sql<{ id: string; previous: string; hash: string }[]>`
    select id, encode(previous_hash, 'hex') as previous, encode(hash, 'hex') as hash
    from management.history where flag_id = ${flagId} and environment_id = ${environmentId}
    order by sequence`;
}

function expectChain(links: readonly { previous: string; hash: string }[]): void {
  expect(links.map((link) => link.previous)).toEqual([
    "",
    ...links.slice(0, -1).map((link) => link.hash),
  ]);
  for (const link of links) expect(link.hash).toMatch(/^[0-9a-f]{64}$/);
  expect(new Set(links.map((link) => link.hash)).size).toBe(links.length);
}

/** Creates a database with the migrations before the given number. */
async function databaseBefore(number: string) {
  const database = `halyard_test_${randomUUID().replaceAll("-", "")}`;
  const earlier = mkdtempSync(join(tmpdir(), "halyard-test-migrations-"));
  const admin = postgres(testBackends().postgresAdminUrl, { max: 1 });
  await admin`create database ${admin(database)}`;
  const url = new URL(testBackends().postgresAdminUrl);
  url.pathname = `/${database}`;
  const sql = postgres(url.href, { max: 1, connection: { search_path: "management" } });
  await sql`create schema management`;
  for (const file of readdirSync(migrations).filter((name) => name < number))
    cpSync(join(migrations, file), join(earlier, file));
  const upTo = (directory: string) =>
    migrate({ ownerUrl: url.href, schema: "management", directory });
  await upTo(earlier);
  return {
    url: url.href,
    sql,
    migrate: () => upTo(migrations),
    async drop() {
      await sql.end();
      // Without `force`: it would cut the migrations' connection, which may still be closing, and cause an error.
      // PostgreSQL waits for that connection.
      await admin`drop database if exists ${admin(database)}`;
      await admin.end();
      rmSync(earlier, { recursive: true });
    },
  };
}

describe("given a database from a version without hashes", () => {
  let before: Awaited<ReturnType<typeof databaseBefore>>;

  beforeAll(async () => {
    before = await databaseBefore("0004");
  });
  afterAll(() => before.drop());

  it("links existing and new entries separately for each flag and environment", async () => {
    const written = { [production]: [] as string[], [staging]: [] as string[] };
    const add = async (scope: string) => written[scope]?.push(await addEntry(before.sql, scope));
    for (const scope of [production, staging, staging, production, production]) await add(scope);
    await before.migrate();
    for (const scope of [staging, production]) await add(scope);

    for (const scope of [production, staging]) {
      const links = await linksOf(before.sql, scope);
      expect(links.map((link) => link.id)).toEqual(written[scope]);
      expectChain(links);
    }
  });
});

describe("given a database from a version that recorded where chains begin", () => {
  let before: Awaited<ReturnType<typeof databaseBefore>>;

  beforeAll(async () => {
    before = await databaseBefore("0020");
  });
  afterAll(() => before.drop());

  it("accepts shortened chains after the migration, and no other missing beginnings", async () => {
    const { sql } = before;
    for (const scope of [production, staging])
      for (const days of [99, 90, 80, 70]) {
        const changedAt = new Date(Date.now() - days * 24 * 60 * 60 * 1_000);
        const id = uuidv7({ msecs: changedAt.getTime() });
        await addEntry(sql, scope, { id, changed_at: changedAt });
      }
    await sql`select remove_old_history(75, 1000)`;
    await before.migrate();
    const service = connectPostgres({
      url: before.url,
      name: "test",
      maxConnections: 1,
      logger: pino({ level: "silent" }),
    });
    expect(await findBreaks(service)).toMatchObject({ entries: 6, breaks: 0 });
    await sql`
      delete from history
      where environment_id = ${production} and changed_at < now() - interval '75 days'`;
    expect(await findBreaks(service)).toMatchObject({ entries: 4, breaks: 1 });
    await service.end();
  });
});

describe("given the service's own role", () => {
  let database: TestDatabase;
  let runtime: postgres.Sql;
  let admin: postgres.Sql;

  beforeAll(async () => {
    database = await createTestDatabase();
    runtime = postgres(database.runtimeUrls.management, { max: 1 });
    admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "management" } });
    await addEntry(runtime, production);
  });
  afterAll(async () => {
    await Promise.all([runtime.end(), admin.end()]);
    await database.drop();
  });

  it("links entries that a single statement adds, in another time zone", async () => {
    const scope = randomUUID();
    await runtime`set time zone 'Asia/Kolkata'`;
    await runtime`
      insert into history (id, flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at)
      select gen_random_uuid(), ${flagId}, ${scope}, true, percentage, '[]', 'manual', ${flagId},
        now()
      from generate_series(1, 3) as percentage`;
    expectChain(await linksOf(admin, scope));
  });

  it.each([
    ["change an entry", "update history set enabled = false"],
    ["delete an entry", "delete from history"],
    ["truncate the history", "truncate history"],
    ["change the audit log", "update changes set actor_email = 'x'"],
    ["delete from the audit log", "delete from changes"],
    ["disable the linking trigger", "alter table history disable trigger link_history_entry"],
    ["drop the linking trigger", "drop trigger link_history_entry on history"],
    ["disable all triggers", "set session_replication_role = 'replica'"],
    [
      "replace the function that links entries",
      "create or replace function link_history_entry() returns trigger language plpgsql as 'begin return new; end'",
    ],
    [
      "replace the function that computes hashes",
      "create or replace function hash_of_history_entry(entry history) returns bytea language sql as 'select null'",
    ],
  ])("may not %s", async (_what, statement) => {
    await expect(runtime.unsafe(statement)).rejects.toMatchObject({ code: "42501" });
  });

  it("links to the history even if a temporary table has its name", async () => {
    const scope = randomUUID();
    await addEntry(runtime, scope);
    await admin`grant temporary on database ${admin(new URL(database.adminUrl).pathname.slice(1))} to public`;
    await runtime`create temporary table history (like management.history)`;
    await runtime`
      insert into management.history (id, flag_id, environment_id, enabled, rollout_percentage,
        targeting_rules, change_type, changed_by, changed_at)
      values (gen_random_uuid(), ${flagId}, ${scope}, true, 1, '[]', 'manual', ${flagId}, now())`;
    await runtime`drop table pg_temp.history`;
    expectChain(await linksOf(admin, scope));
  });

  it.each([["hash"], ["previous_hash"]])(
    "may not choose the %s of an inserted entry",
    async (column) => {
      const forged = { [column]: Buffer.alloc(32) };
      await expect(addEntry(runtime, production, forged)).rejects.toMatchObject({ code: "42501" });
    },
  );

  it("may not choose the sequence number of an entry", async () => {
    await expect(
      runtime`
        insert into history (id, flag_id, environment_id, sequence, enabled, rollout_percentage,
          targeting_rules, change_type, changed_by, changed_at) overriding system value
        values (${randomUUID()}, ${flagId}, ${production}, 0, true, 1, '[]', 'manual', ${flagId},
          now())`,
    ).rejects.toMatchObject({ code: "42501" });
  });

  it("is not required: a hash chosen by the owner is replaced too", async () => {
    const scope = randomUUID();
    await addEntry(admin, scope);
    await addEntry(admin, scope, { hash: Buffer.alloc(32), previous_hash: Buffer.alloc(32) });
    expectChain(await linksOf(admin, scope));
  });
});
