import { connectPostgres, type Sql } from "@halyard/postgres";
import { createTestDatabase } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { listSchedules } from "../src/schedules/schedule-store.ts";

/** The cost of listing one environment in a project with many schedules in another environment. */
const [projectId, crowded, other] = [uuidv7(), uuidv7(), uuidv7()];

const database = await createTestDatabase();
const logger = pino({ level: "silent" });
const url = database.runtimeUrls.scheduler;
const sql = connectPostgres({ url, name: "test", maxConnections: 1, logger });
const admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "scheduler" } });
afterAll(async () => {
  await sql.end();
  await admin.end();
  await database.drop();
});
await admin`
  insert into schedules (id, organization_id, project_id, environment_id, flag_id, status, latest,
    created_at, created_by)
  select gen_random_uuid(), ${projectId}, ${projectId},
    case when number = 1 then ${other}::uuid else ${crowded}::uuid end, gen_random_uuid(),
    'pending', true, now(), ${projectId}
  from generate_series(1, 20000) as number`;
await admin`
  insert into scheduled_changes (id, schedule_id, flag_id, environment_id, action, due_at, state)
  select gen_random_uuid(), id, flag_id, environment_id, 'enable', now(), 'waiting'
  from schedules where environment_id = ${other}`;
await admin`analyze schedules, scheduled_changes`;

/** Returns the number of rows read from the table by scans of any kind. */
async function rowsRead(): Promise<number> {
  const [row] = await admin`
    select seq_tup_read + idx_tup_fetch as rows
    from pg_stat_user_tables where relname = 'schedules'`;
  return Number(row?.rows);
}

describe("a page of an environment's schedules", () => {
  it.each([
    ["with one", other, 1],
    ["with none", uuidv7(), 0],
  ])("reads no other rows, in an environment %s", async (_with, environmentId, count) => {
    const before = await rowsRead();
    const page = await sql.begin(async (transaction) => {
      const tx = transaction as unknown as Sql;
      // Without this, PostgreSQL may update the statistics some time after the transaction.
      await tx`select pg_stat_force_next_flush()`;
      return listSchedules(tx, {
        projectId,
        environmentId,
        status: undefined,
        flagId: undefined,
        beforeId: undefined,
        limit: 50,
      });
    });
    expect(page).toHaveLength(count);
    expect((await rowsRead()) - before).toBeLessThan(100);
  });
});
