import { connectPostgres, identifyDatabase } from "@halyard/postgres";
import { connectAsSuperuser, createTestDatabase } from "@halyard/testing";
import { expect, it } from "@jest/globals";
import { pino } from "pino";

it("a database has another identity after its tables were replaced", async () => {
  const database = await createTestDatabase();
  const admin = connectAsSuperuser(database.adminUrl, "scheduler");
  const logger = pino({ level: "silent" });
  const url = database.runtimeUrls.scheduler;
  const sql = connectPostgres({ url, name: "test", maxConnections: 2, logger });
  const [first, again] = await Promise.all([identifyDatabase(sql), identifyDatabase(sql)]);
  expect(again).toBe(first);
  await admin`create table restored (like migrations)`;
  await admin`drop table migrations`;
  await admin`alter table restored rename to migrations`;
  expect(await identifyDatabase(sql)).not.toBe(first);
  await sql.end();
  await admin.end();
  await database.drop();
});
