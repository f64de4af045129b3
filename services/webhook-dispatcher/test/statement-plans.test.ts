import type { FlagEvent } from "@halyard/contracts";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { createTestDatabase, scansOf } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import postgres from "postgres";
import { v7 as uuidv7 } from "uuid";
import { deleteOldDeliveries, deleteOldEvents } from "../src/clean-up.ts";
import { listDeliveries } from "../src/deliveries/delivery-store.ts";
import { type MadeAttempt, recordAttempt } from "../src/dispatch/attempt-store.ts";
import { recordEvent } from "../src/events/consume-events.ts";
import { findDeleted } from "../src/webhooks/cancel-deliveries.ts";

/**
 * The query plans with 50,000 waiting deliveries of 10,000 webhooks. With few rows, PostgreSQL rightly reads whole tables.
 * `dispatch/claim-cost.test.ts` has the plans of claims.
 */
const webhookId = uuidv7();
const projectId = uuidv7();
const deliveryId = uuidv7();

const database = await createTestDatabase();
const logger = pino({ level: "silent" });
const url = database.runtimeUrls.webhooks;
const sql = connectPostgres({ url, name: "test", maxConnections: 1, logger });
afterAll(async () => {
  await sql.end();
  await database.drop();
});
const admin = postgres(database.adminUrl, { max: 1, connection: { search_path: "webhooks" } });
await admin`
  insert into webhooks (id, organization_id, project_id, name, url, events, enabled, created_at,
    updated_at)
  select case number when 0 then ${webhookId} else gen_random_uuid() end, ${projectId},
    case number when 0 then ${projectId} else gen_random_uuid() end, 'Webhook', 'http://localhost/',
    array['flag.toggled'], true, now(), now()
  from generate_series(0, 9999) as number`;
await admin`insert into lanes (webhook_id, organization_id) select id, ${projectId} from webhooks`;
await admin`
  insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
    status, created_at, next_attempt_at)
  select case id when ${webhookId} then ${deliveryId} else gen_random_uuid() end, id, ${projectId},
    project_id, gen_random_uuid(), 'flag.toggled', '{}', 'pending', now(), now()
  from webhooks`;
await admin`
  insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
    status, created_at, next_attempt_at)
  select gen_random_uuid(), id, ${projectId}, project_id, gen_random_uuid(), 'flag.toggled', '{}',
    'pending', now(), now()
  from webhooks, generate_series(1, 4)`;
await admin`
  insert into attempts (id, delivery_id, attempted_at, status_code, duration_ms, response_body)
  select gen_random_uuid(), id, now(), 500, 12, '' from deliveries`;
await admin`
  insert into inbox (event_id, received_at)
  select gen_random_uuid(), now() - random() * interval '7 days' from deliveries`;
await admin`vacuum analyze webhooks, lanes, deliveries, attempts, inbox`;
await admin.end();

/** An attempt without a claim. Its outcome is recorded by the same statements. */
function attemptOf(next: MadeAttempt["next"], statusCode: number): MadeAttempt {
  const webhook = { id: webhookId, url: "http://localhost/" };
  return {
    delivery: { id: deliveryId, claim: uuidv7(), webhook } as MadeAttempt["delivery"],
    attempt: {
      id: uuidv7(),
      attemptedAt: new Date(),
      statusCode,
      durationMs: 12,
      error: null,
      responseBody: "",
    },
    next,
    slow: true,
  };
}

const event = {
  id: uuidv7(),
  event: "flag.toggled",
  timestamp: new Date().toISOString(),
  organization_id: projectId,
  project_id: projectId,
  flag: { id: uuidv7(), key: "checkout", name: "Checkout", enabled: true },
  environment: { id: uuidv7(), name: "production" },
  triggered_by: { id: uuidv7(), email: "ada@example.com" },
  state: { enabled: true, rollout_percentage: 100, targeting_rules: [] },
} as unknown as FlagEvent;

const statements: Record<string, (sql: Sql) => Promise<unknown>> = {
  "recording a successful attempt": (on) =>
    recordAttempt(on, attemptOf({ status: "delivered", goneOnly: false }, 200)),
  "recording a failed attempt": (on) =>
    recordAttempt(on, attemptOf({ status: "retrying", goneOnly: false, afterMs: 60_000 }, 500)),
  "creating the deliveries of an event": (on) => recordEvent(on, event, uuidv7),
  "deleting old deliveries": (on) => deleteOldDeliveries(on, 30),
  "deleting the ids of old events": (on) => deleteOldEvents(on),
  "finding the open deliveries of deleted webhooks": (on) => findDeleted(on),
  "a page of a webhook's deliveries": (on) =>
    listDeliveries(on, { webhookId, status: "failed", beforeId: undefined, limit: 101 }),
};

describe("while 50,000 deliveries wait", () => {
  it.each(Object.keys(statements))("%s reads parts of indexes only", async (name) => {
    const scans = await scansOf(sql, async (on) => statements[name]?.(on));
    expect(scans.length).toBeGreaterThan(0);
    const whole = /^Seq Scan|^Bitmap Index Scan: deliveries_due$/;
    expect(scans.filter((scan) => whole.test(scan))).toEqual([]);
  });
});
