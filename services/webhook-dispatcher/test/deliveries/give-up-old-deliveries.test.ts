import { connectPostgres } from "@halyard/postgres";
import { createTestDatabase } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { giveUpOldDeliveries } from "../../src/deliveries/delivery-store.ts";

/** Deliveries that have waited longer than the retention period. */

const database = await createTestDatabase();
const admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "webhooks" } });
const url = database.runtimeUrls.webhooks;
const logger = pino({ level: "silent" });
const sql = connectPostgres({ url, name: "test", maxConnections: 1, logger });
afterAll(async () => {
  await sql.end();
  await admin.end();
  await database.drop();
});
afterEach(() => admin`delete from deliveries`);

const dayMs = 86_400_000;
const daysAgo = (days: number) => new Date(Date.now() - days * dayMs);

async function put(status: string, days: number, fields: Record<string, unknown> = {}) {
  const created_at = daysAgo(days);
  const id = uuidv7({ msecs: created_at.getTime() });
  const [waits, isClaimed] = [["pending", "retrying"].includes(status), status === "delivering"];
  const row = {
    id,
    webhook_id: uuidv7(),
    organization_id: uuidv7(),
    project_id: uuidv7(),
    event_id: uuidv7(),
    event: "flag.toggled",
    payload: "{}",
    status,
    created_at,
    next_attempt_at: isClaimed ? daysAgo(-1) : waits ? created_at : null,
    finished_at: waits || isClaimed ? null : new Date(),
    ...fields,
  };
  await admin`insert into deliveries ${admin(row)}`;
  return id;
}

const stateOf = async (id: string) => {
  const [row] = await admin`select * from deliveries where id = ${id}`;
  return row;
};

const giveUp = (atMost = 1_000) => giveUpOldDeliveries(sql, { retentionDays: 30, atMost });

describe("giving up old deliveries", () => {
  it.each(["pending", "retrying"])("fails those that are %s for too long", async (status) => {
    const old = await put(status, 31);
    const younger = await put(status, 29);
    expect(await giveUp()).toBe(1);
    expect(await stateOf(old)).toMatchObject({ status: "failed", next_attempt_at: null });
    expect((await stateOf(old))?.finished_at).not.toBeNull();
    expect(await stateOf(younger)).toMatchObject({ status, finished_at: null });
  });

  it("skips those with an attempt in progress and those that have ended", async () => {
    for (const status of ["delivering", "delivered", "cancelled"]) await put(status, 31);
    expect(await giveUp()).toBe(0);
  });

  it("fails redeliveries that have waited for the period since their request", async () => {
    const requested = { redelivery: true };
    await put("pending", 100, { ...requested, next_attempt_at: daysAgo(1) });
    const overdue = await put("pending", 100, { ...requested, next_attempt_at: daysAgo(31) });
    expect(await giveUp()).toBe(1);
    expect(await stateOf(overdue)).toMatchObject({ status: "failed", redelivery: false });
  });

  it("works in batches, the oldest first", async () => {
    const [later, first] = [await put("pending", 40), await put("pending", 50)];
    expect(await giveUp(1)).toBe(1);
    expect(await stateOf(first)).toMatchObject({ status: "failed" });
    expect(await stateOf(later)).toMatchObject({ status: "pending" });
    expect(await giveUp(1)).toBe(1);
    expect(await giveUp(1)).toBe(0);
  });
});
