import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connectPostgres, migrate } from "@halyard/postgres";
import { createTestDatabase, type TestDatabase, testBackends } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { findBreaks } from "../../src/history/verification.ts";

/** Tests that the database links the history entries, and that the service's role cannot bypass the links. */
const migrations = fileURLToPath(new URL("../../migrations", import.meta.url));
const flagId = randomUUID();
const [production, staging] = [randomUUID(), randomUUID()];

const content = {
  enabled: true,
  rollout_percentage: 10,
  targeting_rules: [{ conditions: [], value: false }],
};

/** The columns of an entry before its state was one value. */
const formerColumns = (sql: postgres.Sql) => ({
  ...content,
  targeting_rules: sql.json(content.targeting_rules),
});

async function addEntry(
  sql: postgres.Sql,
  environmentId: string,
  more: Record<string, unknown> = { content: sql.json(content) },
) {
  const id = randomUUID();
  await sql`insert into history ${sql({
    id,
    flag_id: flagId,
    environment_id: environmentId,
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
  drops.push(async () => {
    await sql.end();
    // Without `force`: it would cut the migrations' connection, which may still be closing, and cause an error.
    // PostgreSQL waits for that connection.
    await admin`drop database if exists ${admin(database)}`;
    await admin.end();
    rmSync(earlier, { recursive: true });
  });
  return { url: url.href, sql, migrate: () => upTo(migrations) };
}

const connectAsService = (url: string) =>
  connectPostgres({ url, name: "test", maxConnections: 1, logger: pino({ level: "silent" }) });

const drops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const drop of drops.splice(0)) await drop();
});

describe("given a database from a version without hashes", () => {
  it("links existing and new entries separately for each flag and environment", async () => {
    const before = await databaseBefore("0004");
    const written = { [production]: [] as string[], [staging]: [] as string[] };
    const add = async (scope: string, columns?: object) =>
      written[scope]?.push(await addEntry(before.sql, scope, { ...columns }));
    for (const scope of [production, staging, staging, production, production])
      await add(scope, formerColumns(before.sql));
    await before.migrate();
    for (const scope of [staging, production])
      await add(scope, { content: before.sql.json(content) });

    for (const scope of [production, staging]) {
      const links = await linksOf(before.sql, scope);
      expect(links.map((link) => link.id)).toEqual(written[scope]);
      expectChain(links);
    }
  });
});

describe("given a database from a version that recorded where chains begin", () => {
  it("accepts shortened chains after the migration, and no other missing beginnings", async () => {
    const before = await databaseBefore("0020");
    const { sql } = before;
    for (const scope of [production, staging])
      for (const days of [99, 90, 80, 70]) {
        const changedAt = new Date(Date.now() - days * 24 * 60 * 60 * 1_000);
        const id = uuidv7({ msecs: changedAt.getTime() });
        await addEntry(sql, scope, { ...formerColumns(sql), id, changed_at: changedAt });
      }
    await sql`select remove_old_history(75, 1000)`;
    await before.migrate();
    const service = connectAsService(before.url);
    expect(await findBreaks(service)).toMatchObject({ entries: 6, breaks: 0 });
    await sql`
      delete from history
      where environment_id = ${production} and changed_at < now() - interval '75 days'`;
    expect(await findBreaks(service)).toMatchObject({ entries: 4, breaks: 1 });
    await service.end();
  });
});

describe("given a database from a version whose entries have a column per member", () => {
  it("keeps the hashes of existing entries, which still cover everything that they contain", async () => {
    const before = await databaseBefore("0022");
    const { sql } = before;
    for (const scope of [production, staging]) await addEntry(sql, scope, formerColumns(sql));
    const former = await linksOf(sql, production);
    await before.migrate();
    await addEntry(sql, production);
    expect((await linksOf(sql, production)).slice(0, 1)).toEqual(former);
    const service = connectAsService(before.url);
    expect(await findBreaks(service)).toMatchObject({ entries: 3, breaks: 0 });
    const [entry] =
      await sql`select content, hash_version from history where environment_id = ${staging}`;
    expect(entry).toEqual({ content, hash_version: 1 });
    for (const change of [
      { enabled: false },
      { rollout_percentage: 11 },
      { targeting_rules: [] },
      { unknown: true },
    ]) {
      await sql`update history set content = ${sql.json({ ...content, ...change })} where environment_id = ${staging}`;
      expect(await findBreaks(service)).toMatchObject({ breaks: 1 });
    }
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
      insert into history (id, flag_id, environment_id, content, change_type, changed_by, changed_at)
      select gen_random_uuid(), ${flagId}, ${scope},
        ${runtime.json(content)}::jsonb || jsonb_build_object('rollout_percentage', percentage),
        'manual', ${flagId}, now()
      from generate_series(1, 3) as percentage`;
    expectChain(await linksOf(admin, scope));
  });

  it.each([
    ["change an entry", "update history set content = '{}'"],
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
      insert into management.history (id, flag_id, environment_id, content, change_type, changed_by,
        changed_at)
      values (gen_random_uuid(), ${flagId}, ${scope}, ${runtime.json(content)}, 'manual', ${flagId},
        now())`;
    await runtime`drop table pg_temp.history`;
    expectChain(await linksOf(admin, scope));
  });

  it.each([
    ["hash", Buffer.alloc(32)],
    ["previous_hash", Buffer.alloc(32)],
    ["hash_version", 1],
  ])("may not choose the %s of an inserted entry", async (column, value) => {
    const forged = { content: runtime.json(content), [column]: value };
    await expect(addEntry(runtime, production, forged)).rejects.toMatchObject({ code: "42501" });
  });

  it("may not choose the sequence number of an entry", async () => {
    await expect(
      runtime`
        insert into history (id, flag_id, environment_id, sequence, content, change_type, changed_by,
          changed_at) overriding system value
        values (${randomUUID()}, ${flagId}, ${production}, 0, ${runtime.json(content)}, 'manual',
          ${flagId}, now())`,
    ).rejects.toMatchObject({ code: "42501" });
  });

  it.each([
    ["a percentage of another type", { ...content, rollout_percentage: "50" }],
    ["a percentage above 100", { ...content, rollout_percentage: 101 }],
    ["a state without rules", { enabled: true, rollout_percentage: 50 }],
    ["a list", [content]],
  ])("may not store %s as a state", async (_, stored) => {
    await expect(
      addEntry(runtime, production, { content: runtime.json(stored) }),
    ).rejects.toMatchObject({ code: "23514" });
  });

  it("is not required: a hash chosen by the owner is replaced too", async () => {
    const scope = randomUUID();
    await addEntry(admin, scope);
    const forged = { hash: Buffer.alloc(32), previous_hash: Buffer.alloc(32), hash_version: 1 };
    await addEntry(admin, scope, { content: admin.json(content), ...forged });
    expectChain(await linksOf(admin, scope));
  });
});
