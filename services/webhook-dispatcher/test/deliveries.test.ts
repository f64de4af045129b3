import { eventually } from "@halyard/testing";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { v4 as uuidv4, v7 as uuidv7 } from "uuid";
import { payloadOf } from "../src/sending/payload.ts";
import { cancelLeftovers } from "../src/webhooks/cancel-deliveries.ts";
import {
  makeAudienceEvent,
  makeChangeRequestEvent,
  makeProtectionEvent,
} from "./dispatch/dispatch-fixture.ts";
import {
  type DeliveryRow,
  makeDelivery,
  openDispatcher,
  waitsForLock,
} from "./dispatcher-fixture.ts";

/** The API of deliveries. The tests insert deliveries into the database, and no dispatcher sends them. */
let webhook: { id: string; path: string };

const dispatcher = await openDispatcher();
afterAll(() => dispatcher.close());
const replica = await dispatcher.startReplica();
const tenant = await dispatcher.newTenant(replica);

beforeEach(async () => {
  webhook = await newWebhook();
});

async function newWebhook() {
  const { body } = await replica.call(tenant.path, {
    method: "POST",
    key: tenant.serverKey,
    body: { name: uuidv7(), url: "https://example.com/", events: ["flag.toggled"] },
  });
  return { id: body.id as string, path: `${tenant.path}/${body.id}` };
}

const get = (path: string) => replica.call(path, { key: tenant.serverKey });
const redeliver = ({ id }: { id: string }) =>
  replica.call(`${webhook.path}/deliveries/${id}/redeliver`, {
    method: "POST",
    key: tenant.serverKey,
  });

async function given(status: string, fields: Partial<DeliveryRow> = {}): Promise<DeliveryRow> {
  const row = makeDelivery(tenant, webhook.id, status, fields);
  await dispatcher.admin`insert into deliveries ${dispatcher.admin(row)}`;
  return row;
}

async function rowOf({ id }: { id: string }) {
  const [row] = await dispatcher.admin`select * from deliveries where id = ${id}`;
  return row;
}

async function laneDueAt(): Promise<Date | null> {
  const [lane] = await dispatcher.admin`
    select due_at from lanes where webhook_id = ${webhook.id}`;
  return lane?.due_at;
}

describe("the deliveries of a webhook", () => {
  it("are listed with the newest first, without those of other webhooks", async () => {
    const rows = [await given("delivered"), await given("retrying"), await given("pending")];
    const other = await newWebhook();
    await dispatcher.admin`
      insert into deliveries ${dispatcher.admin(makeDelivery(tenant, other.id, "pending"))}`;
    const { status, body } = await get(`${webhook.path}/deliveries`);
    expect(status).toBe(200);
    expect(body.next_cursor).toBeNull();
    expect(body.deliveries).toEqual(
      rows.reverse().map((row) => ({
        id: row.id,
        webhook_id: webhook.id,
        event_id: row.event_id,
        event: "flag.toggled",
        flag_key: "webhook-test",
        environment_id: JSON.parse(row.payload).environment.id,
        status: row.status,
        attempts_made: row.attempts_made,
        last_status_code: null,
        created_at: row.created_at.toISOString(),
        next_attempt_at: row.next_attempt_at?.toISOString() ?? null,
        delivered_at: row.delivered_at?.toISOString() ?? null,
      })),
    );
  });

  it("have the flag and the environment whatever their names contain", async () => {
    const row = makeDelivery(tenant, webhook.id, "failed");
    const payload = JSON.parse(row.payload);
    payload.flag.key = "checkout";
    payload.flag.name = '"environment":{"id":"1"} \\'.padEnd(255, '"');
    const environmentId = uuidv7();
    payload.environment = { id: environmentId, name: '"flag":{"id":"1","key":"other"' };
    await given("failed", { payload: JSON.stringify(payload) });
    const { body } = await get(`${webhook.path}/deliveries`);
    expect(body.deliveries).toMatchObject([
      { flag_key: "checkout", environment_id: environmentId },
    ]);
  });

  it("of a flag have no key of an audience, whatever the rules contain", async () => {
    const payload = JSON.parse(makeDelivery(tenant, webhook.id, "failed").payload);
    payload.rules = [{ conditions: [{ value: { audience: { key: "beta" } } }] }];
    await given("failed", { payload: JSON.stringify(payload) });
    const { body } = await get(`${webhook.path}/deliveries`);
    expect(body.deliveries).toHaveLength(1);
    expect(body.deliveries[0]).not.toHaveProperty("audience_key");
  });

  it("have the key of an audience in place of the flag and the environment", async () => {
    const payload = payloadOf(makeAudienceEvent());
    await given("failed", { event: payload.event, payload: JSON.stringify(payload) });
    const { body } = await get(`${webhook.path}/deliveries`);
    expect(body.deliveries).toMatchObject([
      { event: "audience.updated", audience_key: "beta", flag_key: null, environment_id: null },
    ]);
  });

  it("have the id of a change request, or the environment of a changed protection", async () => {
    const opened = makeChangeRequestEvent();
    const changed = makeProtectionEvent();
    for (const event of [opened, changed])
      await given("failed", { event: event.event, payload: JSON.stringify(payloadOf(event)) });
    const { body } = await get(`${webhook.path}/deliveries`);
    const { id: change_request_id } = opened.change_request;
    expect(body.deliveries).toMatchObject([
      { flag_key: null, environment_id: changed.environment.id },
      { flag_key: null, environment_id: null, change_request_id },
    ]);
    expect(body.deliveries[0]).not.toHaveProperty("change_request_id");
  });

  it("have the status of the last attempt, which can have no response", async () => {
    const row = await given("retrying");
    const statusAfter = async (statusCode: number | null) => {
      const attempt = {
        id: uuidv7(),
        delivery_id: row.id,
        attempted_at: new Date(),
        status_code: statusCode,
        duration_ms: 1,
      };
      await dispatcher.admin`insert into attempts ${dispatcher.admin(attempt)}`;
      const { body } = await get(`${webhook.path}/deliveries`);
      return body.deliveries[0].last_status_code;
    };
    expect(await statusAfter(503)).toBe(503);
    expect(await statusAfter(null)).toBeNull();
    expect(await statusAfter(200)).toBe(200);
    expect((await redeliver(row)).body.last_status_code).toBe(200);
  });

  it("appear once each in the pages, even if deliveries are added meanwhile", async () => {
    const ids: string[] = [];
    for (let made = 0; made < 7; made += 1) ids.unshift((await given("failed")).id);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const after: string = cursor === null ? "" : `&cursor=${cursor}`;
      const { body } = await get(`${webhook.path}/deliveries?limit=3${after}`);
      seen.push(...body.deliveries.map((delivery: { id: string }) => delivery.id));
      cursor = body.next_cursor;
      await given("pending");
    } while (cursor !== null);
    expect(seen).toEqual(ids);
  });

  it("are 100 to a page by default", async () => {
    const rows = Array.from({ length: 101 }, () => makeDelivery(tenant, webhook.id, "failed"));
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(rows)}`;
    expect((await get(`${webhook.path}/deliveries`)).body.deliveries).toHaveLength(100);
    const whole = (await get(`${webhook.path}/deliveries?limit=101`)).body;
    expect(whole.deliveries).toHaveLength(101);
    expect(whole.next_cursor).toBeNull();
  });

  it.each(["pending", "delivering", "retrying", "delivered", "failed", "cancelled"])(
    "can be filtered by the status %s",
    async (status) => {
      const row = await given(status);
      await given(status === "failed" ? "cancelled" : "failed");
      const { body } = await get(`${webhook.path}/deliveries?status=${status}`);
      expect(body.deliveries.map((delivery: { id: string }) => delivery.id)).toEqual([row.id]);
    },
  );

  it.each([
    "status=lost",
    "status=",
    "limit=0",
    "limit=1001",
    "limit=many",
    "cursor=nonsense",
    "cursor=",
    "page=2",
    "limit=1&limit=2",
  ])("cannot be listed with %s", async (query) => {
    const { status, body } = await get(`${webhook.path}/deliveries?${query}`);
    expect(status).toBe(400);
    expect(body.error.code).toBe("VALIDATION_001");
  });
});

describe("a delivery", () => {
  it("is returned with its payload and its attempts in the order of time", async () => {
    const row = await given("delivered", { attempts_made: 2 });
    const attempts = [
      {
        id: uuidv7(),
        delivery_id: row.id,
        attempted_at: new Date("2027-01-01T00:00:00.123Z"),
        status_code: null,
        duration_ms: 30_000,
        error: "no answer within 30 s",
        response_body: null,
      },
      {
        id: uuidv7(),
        delivery_id: row.id,
        attempted_at: new Date("2027-01-01T00:01:00.456Z"),
        status_code: 200,
        duration_ms: 12,
        error: null,
        response_body: "thank you ✓",
      },
    ];
    await dispatcher.admin`insert into attempts ${dispatcher.admin(attempts.toReversed())}`;
    const { status, body } = await get(`${webhook.path}/deliveries/${row.id}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: row.id, status: "delivered", attempts_made: 2 });
    expect(body.payload).toEqual(JSON.parse(row.payload));
    expect(body.attempts).toEqual(
      attempts.map(({ id: _id, delivery_id: _delivery, ...attempt }) => ({
        ...attempt,
        attempted_at: attempt.attempted_at.toISOString(),
      })),
    );
  });

  it("is returned with its newest 100 attempts", async () => {
    const row = await given("failed", { attempts_made: 105 });
    const attempts = Array.from({ length: 105 }, (_, index) => ({
      id: uuidv7(),
      delivery_id: row.id,
      attempted_at: new Date(),
      duration_ms: index,
    }));
    await dispatcher.admin`insert into attempts ${dispatcher.admin(attempts)}`;
    const { body } = await get(`${webhook.path}/deliveries/${row.id}`);
    expect(body.attempts.map((attempt: { duration_ms: number }) => attempt.duration_ms)).toEqual(
      attempts.slice(5).map((attempt) => attempt.duration_ms),
    );
  });

  it("is not found by the path of another webhook, an unknown id or an invalid id", async () => {
    const row = await given("failed");
    const other = await newWebhook();
    for (const path of [
      `${other.path}/deliveries/${row.id}`,
      `${webhook.path}/deliveries/${uuidv4()}`,
      `${webhook.path}/deliveries/nothing`,
    ])
      expect((await get(path)).body.error.code).toBe("NOT_FOUND_001");
  });
});

describe("redelivering", () => {
  it.each(["delivered", "failed", "cancelled"])(
    "a delivery that is %s makes it due now for one attempt without retries",
    async (status) => {
      const row = await given(status);
      const wokenBefore = replica.wokenTimes();
      const answer = await redeliver(row);
      expect(answer.status).toBe(202);
      expect(answer.body).toMatchObject({
        id: row.id,
        event_id: row.event_id,
        status: "pending",
        attempts_made: row.attempts_made,
        delivered_at: row.delivered_at?.toISOString() ?? null,
      });
      const dueAt = new Date(answer.body.next_attempt_at);
      expect(dueAt.getTime()).toBeLessThanOrEqual(Date.now());
      expect(await rowOf(row)).toMatchObject({
        status: "pending",
        redelivery: true,
        finished_at: null,
        payload: row.payload,
      });
      expect(await laneDueAt()).toEqual(dueAt);
      expect(replica.wokenTimes()).toBe(wokenBefore + 1);
    },
  );

  it.each(["pending", "retrying"])(
    "a delivery that is %s makes it due now and keeps its retries",
    async (status) => {
      const row = await given(status);
      const answer = await redeliver(row);
      expect(answer).toMatchObject({ status: 202, body: { status: "pending" } });
      expect(Date.parse(answer.body.next_attempt_at)).toBeLessThanOrEqual(Date.now());
      expect(await rowOf(row)).toMatchObject({ redelivery: false });
    },
  );

  it("a delivery that is already due keeps its due time", async () => {
    const due = new Date("2026-01-01T00:00:00Z");
    const row = await given("pending", { next_attempt_at: due });
    expect((await redeliver(row)).body.next_attempt_at).toBe(due.toISOString());
  });

  it("a delivery with an attempt in progress changes nothing", async () => {
    const row = await given("delivering");
    const before = await rowOf(row);
    expect(await redeliver(row)).toMatchObject({
      status: 202,
      body: { status: "delivering", next_attempt_at: null },
    });
    expect(await rowOf(row)).toEqual(before);
  });

  it("does not change a concurrent claim", async () => {
    const row = await given("pending");
    const claimedBy = uuidv7();
    let answer: ReturnType<typeof redeliver> | undefined;
    await dispatcher.admin.begin(async (tx) => {
      await tx`
        update deliveries set status = 'delivering', claimed_by = ${claimedBy},
          next_attempt_at = now() + interval '1 minute'
        where id = ${row.id}`;
      answer = redeliver(row);
      await eventually(() => waitsForLock(dispatcher), {
        because: "the redelivery waits for the claim",
      });
    });
    expect(await answer).toMatchObject({ status: 202, body: { status: "delivering" } });
    expect(await rowOf(row)).toMatchObject({ status: "delivering", claimed_by: claimedBy });
  });

  it("causes one attempt for many concurrent requests", async () => {
    const row = await given("failed");
    const answers = await Promise.all(Array.from({ length: 8 }, () => redeliver(row)));
    for (const answer of answers)
      expect(answer).toMatchObject({ status: 202, body: { status: "pending" } });
    const listed = await get(`${webhook.path}/deliveries`);
    expect(listed.body.deliveries).toHaveLength(1);
  });

  it("is possible for a disabled webhook", async () => {
    const row = await given("failed");
    const body = { enabled: false };
    await replica.call(webhook.path, { method: "PATCH", key: tenant.serverKey, body });
    expect((await redeliver(row)).status).toBe(202);
  });

  it.each(["pending", "retrying"])(
    "a delivery that is %s is not cancelled if the webhook was disabled before",
    async (status) => {
      const row = await given(status);
      await dispatcher.admin`update webhooks set enabled = false where id = ${webhook.id}`;
      expect((await redeliver(row)).body.status).toBe("pending");
      await cancelLeftovers(replica.sql);
      expect(await rowOf(row)).toMatchObject({ status: "pending", redelivery: true });
    },
  );

  it("is cancelled when the webhook is deleted, even concurrently", async () => {
    const row = await given("failed");
    const [asked] = await Promise.all([
      redeliver(row),
      replica.call(webhook.path, { method: "DELETE", key: tenant.serverKey }),
    ]);
    expect([202, 404]).toContain(asked.status);
    expect(["failed", "cancelled"]).toContain((await rowOf(row))?.status);
    expect((await redeliver(row)).status).toBe(404);
  });

  it("answers 404 for a key of another project, and sends nothing", async () => {
    const row = await given("failed");
    const other = await dispatcher.newTenant(replica);
    const answer = await replica.call(
      `${other.path}/${webhook.id}/deliveries/${row.id}/redeliver`,
      { method: "POST", key: other.serverKey },
    );
    expect(answer.status).toBe(404);
    expect(await rowOf(row)).toMatchObject({ status: "failed" });
  });

  it("answers 404 for the path of another webhook, an unknown id or an invalid id", async () => {
    const row = await given("failed");
    const other = await newWebhook();
    for (const path of [
      `${other.path}/deliveries/${row.id}/redeliver`,
      `${webhook.path}/deliveries/${uuidv4()}/redeliver`,
      `${webhook.path}/deliveries/nothing/redeliver`,
    ]) {
      const { body } = await replica.call(path, { method: "POST", key: tenant.serverKey });
      expect(body.error.code).toBe("NOT_FOUND_001");
    }
    expect((await rowOf(row))?.status).toBe("failed");
  });
});

describe("deleting a project", () => {
  it("deletes its webhooks, cancels their deliveries and revokes its keys, but no others", async () => {
    const deleted = await dispatcher.newTenant(replica);
    const created = await replica.call(deleted.path, {
      method: "POST",
      key: deleted.serverKey,
      body: { name: "deploys", url: "https://example.com/", events: ["flag.toggled"] },
    });
    const delivery = makeDelivery(deleted, created.body.id, "pending");
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(delivery)}`;
    const other = await given("pending");
    await dispatcher.deleteProject(deleted);
    await eventually(() => !replica.hasKeysOf(deleted));
    expect((await replica.call(deleted.path, { key: deleted.serverKey })).status).toBe(401);
    dispatcher.advanceSweep(2 * 3_600_000);
    await eventually(async () => (await rowOf(delivery))?.status === "cancelled");
    await eventually(async () => {
      const left = await dispatcher.admin`
        select from webhooks where project_id = ${deleted.projectId}`;
      return left.length === 0;
    });
    expect(await rowOf(other)).toMatchObject({ status: "pending" });
    expect((await get(webhook.path)).status).toBe(200);
  });
});
