import { connectPostgres, type Sql } from "@halyard/postgres";
import { createTestDatabase, type TestDatabase } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { deleteOldDeliveries, deleteOldEvents } from "../src/clean-up.ts";

/** Rows that the clean-up deletes or keeps. */
let database: TestDatabase;
let admin: postgres.Sql;
let sql: Sql;

beforeAll(async () => {
  database = await createTestDatabase();
  admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "webhooks" } });
  const url = database.runtimeUrls.webhooks;
  sql = connectPostgres({
    url,
    name: "test",
    maxConnections: 1,
    logger: pino({ level: "silent" }),
  });
});
afterAll(async () => {
  await sql?.end();
  await admin?.end();
  await database?.drop();
});

/** Inserts deliveries with one attempt each. */
async function putDeliveries(status: string, daysAgo: number, count = 1) {
  const waits = ["pending", "retrying"].includes(status);
  await admin`
    with made as (
      insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
        status, created_at, next_attempt_at, finished_at)
      select gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(),
        gen_random_uuid(), 'flag.toggled', '{}', ${status}, now() - ${daysAgo} * interval '1 day',
        ${waits ? new Date() : null}::timestamptz,
        case when ${!waits} then now() - ${daysAgo} * interval '1 day' end
      from generate_series(1, ${count})
      returning id
    )
    insert into attempts (id, delivery_id, attempted_at, duration_ms)
    select gen_random_uuid(), id, now(), 1 from made`;
}

const countOf = async (table: string) => {
  const [row] = await admin`select count(*)::integer as count from ${admin(table)}`;
  return row?.count;
};

describe("the clean-up", () => {
  it("deletes deliveries that ended before the retention period, with their attempts", async () => {
    for (const status of ["delivered", "failed", "cancelled"]) {
      await putDeliveries(status, 29);
      await putDeliveries(status, 31);
    }
    for (const status of ["pending", "retrying"]) await putDeliveries(status, 31);
    expect(await deleteOldDeliveries(sql, 30)).toBe(3);
    expect(await countOf("deliveries")).toBe(5);
    expect(await countOf("attempts")).toBe(5);
    expect(await deleteOldDeliveries(sql, 30)).toBe(0);
  });

  it("deletes in batches", async () => {
    await putDeliveries("delivered", 31, 1_100);
    expect(await deleteOldDeliveries(sql, 30)).toBe(1_000);
    expect(await deleteOldDeliveries(sql, 30)).toBe(100);
  });

  it("deletes event ids when the stream cannot deliver the events again", async () => {
    await admin`
      insert into inbox (event_id, received_at)
      select gen_random_uuid(), now() - days * interval '1 day' from unnest(array[1, 7, 9, 100]) as days`;
    expect(await deleteOldEvents(sql)).toBe(2);
    expect(await countOf("inbox")).toBe(2);
  });
});
