import { connectPostgres } from "@halyard/postgres";
import { createTestDatabase } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";

/** The rights of management's runtime role in a provisioned and migrated database. */

const database = await createTestDatabase();
const runtime = connectPostgres({
  url: database.runtimeUrls.management,
  name: "test",
  maxConnections: 1,
  logger: pino({ level: "silent" }),
});
afterAll(async () => {
  await runtime.end();
  await database.drop();
});

const insufficientPrivilege = { code: "42501" };

describe("given the runtime role", () => {
  it("reads the tables of its schema", async () => {
    expect(await runtime`select * from flags`).toHaveLength(0);
  });

  it.each([
    ["change the history", "update history set change_type = 'manual'"],
    ["delete from the history", "delete from history"],
    ["change the audit log", "update changes set actor_email = 'x'"],
    ["delete from the audit log", "delete from changes"],
    ["empty a table", "truncate outbox"],
    ["alter a table", "alter table flags add column x integer"],
    ["create a table", "create table x (y integer)"],
    ["create a table in the public schema", "create table public.x (y integer)"],
    ["change a flag's key", "update flags set key = 'x'"],
    ["change a key's secret", "update api_keys set secret_sha256 = ''"],
    ["read the table of migrations", "select * from migrations"],
  ])("may not %s", async (_what, statement) => {
    await expect(runtime.unprepared(statement)).rejects.toMatchObject(insufficientPrivilege);
  });
});
