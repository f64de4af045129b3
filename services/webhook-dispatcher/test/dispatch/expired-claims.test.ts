import { connectPostgres, type Sql } from "@halyard/postgres";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import {
  claimDeliveries,
  expiredClaims,
  releaseExpiredClaims,
  renewClaims,
} from "../../src/dispatch/claim-store.ts";
import { type Dispatch, openDispatch } from "./dispatch-fixture.ts";

/** Renewal and release of expired claims. No dispatcher runs here. */
let dispatch: Dispatch;
let sql: Sql;

beforeAll(async () => {
  dispatch = await openDispatch();
  const logger = pino({ level: "silent" });
  sql = connectPostgres({ url: dispatch.runtimeUrl, name: "test", maxConnections: 2, logger });
});
afterAll(async () => {
  await sql?.end();
  await dispatch?.close();
});

async function expiredDelivery() {
  const webhook = await dispatch.newWebhook();
  await dispatch.putDeliveries(webhook, 1);
  const claim = uuidv7();
  const ended = { lastsMs: -1, claimedAtMs: 0 };
  await claimDeliveries(sql, { webhookIds: [webhook.id], atMost: 1, claim, ...ended });
  const found = await expiredClaims(sql, 10);
  return { webhook, claim, expired: found.filter(({ webhookId }) => webhookId === webhook.id) };
}

describe("an expired claim", () => {
  it("is released, and its delivery is due again", async () => {
    const { webhook, expired } = await expiredDelivery();
    expect(await releaseExpiredClaims(sql, expired)).toBe(1);
    expect(await dispatch.deliveriesTo(webhook)).toMatchObject([
      { status: "pending", claimed_by: null },
    ]);
  });

  it("is not released after its process has renewed it", async () => {
    const { webhook, claim, expired } = await expiredDelivery();
    const [{ id = "" } = {}] = expired;
    await renewClaims(sql, [{ id, claim }], 60_000);
    expect(await releaseExpiredClaims(sql, expired)).toBe(0);
    expect(await dispatch.deliveriesTo(webhook)).toMatchObject([
      { status: "delivering", claimed_by: claim },
    ]);
  });
});
