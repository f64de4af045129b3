import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { v4 as uuidv4, v7 as uuidv7 } from "uuid";
import { deleteOld } from "../src/clean-up.ts";
import { makeTenant, openScheduler, type Replica, type Tenant } from "./scheduler-fixture.ts";

/** Setting, reading, clearing and listing schedules. All times are at least an hour ahead, so no change comes due. */

const scheduler = await openScheduler();
afterAll(() => scheduler.close());
const replica = await scheduler.startReplica();
const tenant = await newTenant();

async function newTenant(): Promise<Tenant> {
  const made = makeTenant();
  await scheduler.bucket.put(...made.entries);
  await eventually(() => replica.hasKey(made.environmentOnlyKey));
  return made;
}

async function newFlag(fields: Parameters<Tenant["flag"]>[0] = {}, of = tenant) {
  const flag = of.flag(fields);
  await scheduler.bucket.put(flag.entry);
  await eventually(() => replica.hasFlag(flag));
  return flag;
}

const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

const post = (path: string, body: unknown, key = tenant.serverKey) =>
  replica.call(path, { method: "POST", key, body });
const get = (path: string, key = tenant.serverKey) => replica.call(path, { key });
const remove = (path: string, key = tenant.serverKey) =>
  replica.call(path, { method: "DELETE", key });

describe("setting a schedule", () => {
  it("returns the schedule and its location", async () => {
    const flag = await newFlag();
    const [enableAt, disableAt] = [inHours(1), inHours(2)];
    const set = await post(flag.path, { enable_at: enableAt, disable_at: disableAt });
    expect(set.status).toBe(201);
    expect(set.headers.get("location")).toBe(flag.path);
    const pending = { state: "pending", applied_at: null, lateness_ms: null };
    expect(set.body).toEqual({
      id: expect.any(String),
      flag_id: flag.flagId,
      environment_id: flag.environmentId,
      enable_at: enableAt,
      disable_at: disableAt,
      status: "pending",
      changes: [
        { action: "enable", at: enableAt, ...pending },
        { action: "disable", at: disableAt, ...pending },
      ],
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      created_by: tenant.userId,
      cancelled_at: null,
      cancelled_by: null,
    });
    expect(await get(flag.path)).toMatchObject({ status: 200, body: set.body });
  });

  it("replaces the previous schedule, whose changes are cancelled", async () => {
    const flag = await newFlag();
    const first = await post(flag.path, { enable_at: inHours(1), disable_at: inHours(2) });
    const second = await post(flag.path, { disable_at: inHours(3) }, tenant.colleagueKey);
    expect((await get(flag.path)).body.id).toBe(second.body.id);
    const { body } = await get(`/api/v1/schedules?flag_id=${flag.flagId}`);
    expect(body.schedules).toEqual([
      second.body,
      {
        ...first.body,
        status: "cancelled",
        changes: first.body.changes.map((change: object) => ({ ...change, state: "cancelled" })),
        cancelled_at: expect.stringMatching(/^\d{4}-.*Z$/),
        cancelled_by: tenant.colleagueId,
      },
    ]);
    const cancelledAt = Date.parse(body.schedules[1].cancelled_at);
    expect(cancelledAt).toBeGreaterThanOrEqual(Date.parse(second.body.created_at));
  });

  it("leaves the previous schedule unchanged if the request is rejected", async () => {
    const flag = await newFlag();
    const { body } = await post(flag.path, { enable_at: inHours(1) });
    for (const bad of badBodies) expect((await post(flag.path, bad.body)).status).toBe(400);
    expect((await get(flag.path)).body).toEqual(body);
  });

  it("leaves one pending schedule after many concurrent requests", async () => {
    const flag = await newFlag();
    const all = Array.from({ length: 20 }, (_, index) =>
      post(flag.path, { enable_at: inHours(index + 1) }),
    );
    for (const { status } of await Promise.all(all)) expect(status).toBe(201);
    const path = `/api/v1/schedules?flag_id=${flag.flagId}`;
    expect((await get(`${path}&status=pending`)).body.schedules).toHaveLength(1);
    expect((await get(`${path}&status=cancelled`)).body.schedules).toHaveLength(19);
  });
});

const badBodies = [
  { name: "no time", body: {} },
  { name: "only null", body: { enable_at: null, disable_at: null } },
  {
    name: "two equal times",
    body: {
      enable_at: inHours(1),
      get disable_at() {
        return this.enable_at;
      },
    },
  },
  { name: "a time that is past", body: { enable_at: "2020-01-01T00:00:00Z" } },
  { name: "a time without a zone", body: { enable_at: "2099-01-01T00:00:00" } },
  { name: "a day without a time", body: { enable_at: "2099-01-01" } },
  { name: "a day that does not exist", body: { enable_at: "2099-02-30T00:00:00Z" } },
  { name: "an hour that does not exist", body: { enable_at: "2099-01-01T25:00:00Z" } },
  { name: "a year of six digits", body: { enable_at: "+010000-01-01T00:00:00Z" } },
  { name: "a number", body: { enable_at: 4_070_908_800 } },
  { name: "an empty text", body: { enable_at: "" } },
  { name: "a misspelt field", body: { enable_at: inHours(1), disabled_at: inHours(2) } },
  { name: "an array", body: [] },
];

describe("the validation of a schedule", () => {
  it.each(badBodies)("rejects $name", async ({ body }) => {
    const flag = await newFlag();
    const answer = await post(flag.path, body);
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({ code: "VALIDATION_001", category: "VALIDATION" });
    expect((await get(flag.path)).status).toBe(404);
  });

  const noInstant =
    "/enable_at must be an ISO 8601 instant that exists, such as 2027-01-31T09:00:00Z or 2027-01-31T10:00:00+01:00";
  it.each([
    [{}, '"" (the whole document) must have enable_at, disable_at or both'],
    [{ at: "2030-01-01T00:00:00Z" }, "/at is not a known field"],
    [{ enable_at: "2030-02-30T00:00:00Z" }, noInstant],
    [{ enable_at: "2030-01-01T00:00:00" }, noInstant],
    [{ enable_at: "2030-01-01t00:00:00z" }, noInstant],
    [{ enable_at: "20300101T000000Z" }, noInstant],
    [{ enable_at: "2030-W01-1T00:00:00Z" }, noInstant],
    [{ enable_at: "2030-001T00:00:00Z" }, noInstant],
    [{ enable_at: "2030-01-01T24:00:00Z" }, noInstant],
    [{ enable_at: "2030-06-30T23:59:60Z" }, noInstant],
  ])("rejects %j with a specific message", async (body, message) => {
    const flag = await newFlag();
    expect((await post(flag.path, body)).body.error?.message).toBe(message);
  });

  it.each([
    "2099-01-01T00:00Z",
    "2099-01-01T00:00:00.5Z",
    "2099-01-01T00:00:00,123456789+05:45",
    "2099-01-01T00:00:00-0800",
    "2099-01-01T00:00:00+01",
  ])("accepts %s", async (text) => {
    const flag = await newFlag();
    expect((await post(flag.path, { enable_at: text })).status).toBe(201);
  });
});

describe("access to schedules", () => {
  it("returns the same error for unknown ids and for invalid ids", async () => {
    const flag = await newFlag();
    for (const path of [
      `/api/v1/flags/${uuidv4()}/environments/${flag.environmentId}/schedule`,
      `/api/v1/flags/${flag.flagId}/environments/${uuidv4()}/schedule`,
      `/api/v1/flags/nothing/environments/${flag.environmentId}/schedule`,
    ])
      expect((await post(path, { enable_at: inHours(1) })).body.error.code).toBe("NOT_FOUND_001");
  });

  it("requires a server key", async () => {
    const flag = await newFlag();
    const body = { enable_at: inHours(1) };
    expect((await post(flag.path, body, tenant.clientKey)).body.error.code).toBe("AUTH_002");
    expect((await post(flag.path, body, "hs_nobody")).body.error.code).toBe("AUTH_001");
    expect((await get(flag.path, tenant.clientKey)).status).toBe(403);
    expect((await remove(flag.path, tenant.clientKey)).status).toBe(403);
    expect((await get("/api/v1/schedules", tenant.clientKey)).status).toBe(403);
    expect((await get(flag.path)).status).toBe(404);
  });

  it("excludes other tenants", async () => {
    const other = await newTenant();
    const flag = await newFlag({}, other);
    await post(flag.path, { enable_at: inHours(1) }, other.serverKey);
    expect((await get(flag.path)).status).toBe(404);
    expect((await post(flag.path, { enable_at: inHours(2) })).status).toBe(404);
    expect((await remove(flag.path)).status).toBe(404);
    const { body } = await get("/api/v1/schedules?limit=1000");
    expect(JSON.stringify(body)).not.toContain(flag.flagId);
    expect((await get(flag.path, other.serverKey)).body.status).toBe("pending");
  });

  it("is limited to one environment for an environment_only key", async () => {
    const here = await newFlag();
    const there = await newFlag({ environment_id: tenant.otherEnvironmentId });
    const key = tenant.environmentOnlyKey;
    expect((await post(here.path, { enable_at: inHours(1) }, key)).status).toBe(201);
    expect((await post(there.path, { enable_at: inHours(1) }, key)).body.error.code).toBe(
      "AUTH_002",
    );
    expect((await post(there.path, { enable_at: inHours(1) })).status).toBe(201);
    const { body } = await get("/api/v1/schedules?limit=1000", key);
    const environments = body.schedules.map(
      (each: { environment_id: string }) => each.environment_id,
    );
    expect(new Set(environments)).toEqual(new Set([tenant.environmentId]));
    const otherEnvironment = `/api/v1/schedules?environment_id=${tenant.otherEnvironmentId}`;
    expect((await get(otherEnvironment, key)).body.error.code).toBe("AUTH_002");
  });
});

describe("a flag that was just created", () => {
  /** A replica that waits longer than a test may take, so a request that waits in vain fails its test. */
  let patient: Replica;
  beforeAll(async () => {
    patient = await scheduler.startReplica({ timeoutMs: 120_000 });
    await eventually(() => patient.hasKey(tenant.serverKey));
  });

  it("is awaited if the scheduler has not received it yet", async () => {
    const flag = tenant.flag();
    const body = { enable_at: inHours(1) };
    const set = patient.call(flag.path, { method: "POST", key: tenant.serverKey, body });
    await scheduler.bucket.put(flag.entry);
    expect((await set).status).toBe(201);
  });

  it("is not awaited in an environment of another project", async () => {
    const flag = await newFlag();
    const path = `/api/v1/flags/${flag.flagId}/environments/${uuidv4()}/schedule`;
    await eventually(() => patient.hasFlag(flag));
    expect((await patient.call(path, { key: tenant.serverKey })).status).toBe(404);
  });

  it("is unknown if it does not arrive within a second", async () => {
    const path = `/api/v1/flags/${uuidv7()}/environments/${tenant.environmentId}/schedule`;
    expect((await get(path)).status).toBe(404);
  });
});

describe("clearing a schedule", () => {
  it("cancels a pending schedule, and succeeds without one", async () => {
    const flag = await newFlag();
    expect((await remove(flag.path)).status).toBe(204);
    await post(flag.path, { enable_at: inHours(1) });
    expect((await remove(flag.path, tenant.colleagueKey)).status).toBe(204);
    const { body: cleared } = await get(flag.path);
    expect(cleared).toMatchObject({
      status: "cancelled",
      changes: [{ state: "cancelled", applied_at: null }],
      created_by: tenant.userId,
      cancelled_by: tenant.colleagueId,
    });
    expect((await remove(flag.path)).status).toBe(204);
    expect((await get(flag.path)).body).toEqual(cleared);
  });
});

describe("a flag that is deleted", () => {
  it("cancels its schedules", async () => {
    const flag = await newFlag();
    await post(flag.path, { enable_at: inHours(1), disable_at: inHours(2) });
    await scheduler.bucket.put(flag.deleted);
    const path = `/api/v1/schedules?flag_id=${flag.flagId}`;
    await eventually(async () => (await get(path)).body.schedules[0].status === "cancelled");
    const { body } = await get(path);
    expect(body.schedules).toMatchObject([
      { cancelled_at: expect.any(String), cancelled_by: null },
    ]);
    expect((await get(flag.path)).status).toBe(404);
  });
});

describe("the list of schedules", () => {
  it("is paginated, newest first", async () => {
    const lister = await newTenant();
    const set: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      const flag = await newFlag({}, lister);
      const { body } = await post(flag.path, { enable_at: inHours(1) }, lister.serverKey);
      set.unshift(body.id);
    }
    const seen: string[] = [];
    let cursor = "";
    do {
      const { body } = await get(`/api/v1/schedules?limit=2${cursor}`, lister.serverKey);
      seen.push(...body.schedules.map(({ id }: { id: string }) => id));
      cursor = body.next_cursor === null ? "" : `&cursor=${body.next_cursor}`;
    } while (cursor !== "");
    expect(seen).toEqual(set);
  });

  it.each(["limit=0", "limit=1001", "cursor=bm90IGFuIGlk", "status=done", "flag_id=x", "other=1"])(
    "rejects %s",
    async (query) => {
      expect((await get(`/api/v1/schedules?${query}`)).body.error?.code).toBe("VALIDATION_001");
    },
  );

  it.each(["flag_id", "environment_id"])("rejects an invalid id in %s", async (field) => {
    const { body } = await get(`/api/v1/schedules?${field}=x`);
    expect(body.error.message).toBe(`query parameter /${field} must be an id`);
  });

  it("omits schedules that ended over 90 days ago, except the latest of each flag", async () => {
    const flag = await newFlag();
    await post(flag.path, { enable_at: inHours(1) });
    const { body } = await post(flag.path, { enable_at: inHours(2) });
    await remove(flag.path);
    const path = `/api/v1/schedules?flag_id=${flag.flagId}`;
    expect((await get(path)).body.schedules).toHaveLength(2);
    await scheduler.admin`
      update schedules set finished_at = finished_at - interval '91 days'
      where flag_id = ${flag.flagId}`;
    await deleteOld(replica.sql);
    const { schedules } = (await get(path)).body;
    expect(schedules.map(({ id }: { id: string }) => id)).toEqual([body.id]);
  });
});

describe("the outbox for the audit log", () => {
  it("contains each schedule that is set, replaced or cleared, with the user and the key", async () => {
    const flag = await newFlag();
    const [first, second] = [inHours(1), inHours(2)];
    const headers = { "idempotency-key": uuidv4() };
    const set = () =>
      replica.call(flag.path, {
        method: "POST",
        key: tenant.serverKey,
        body: { enable_at: first },
        headers,
      });
    const { id } = (await set()).body;
    await set();
    const next = (await post(flag.path, { disable_at: second }, tenant.colleagueKey)).body;
    await remove(flag.path);
    await remove(flag.path);

    const rows = await scheduler.admin`
      select message from audit_outbox where message ->> 'flag_id' = ${flag.flagId} order by id`;
    const scope = {
      organization_id: tenant.organizationId,
      project_id: tenant.projectId,
      environment_id: flag.environmentId,
      service: "scheduler",
      webhook_id: null,
    };
    const byUser = { user_id: tenant.userId, api_key_id: tenant.serverKey.slice(3, 19) };
    const byColleague = {
      user_id: tenant.colleagueId,
      api_key_id: tenant.colleagueKey.slice(3, 19),
    };
    const before = { schedule_id: id, enable_at: first, disable_at: null };
    const after = { schedule_id: next.id, enable_at: null, disable_at: second };
    expect(rows.map(({ message }) => message)).toMatchObject([
      { ...scope, ...byUser, action: "schedule_set", before: null, after: before },
      { ...scope, ...byColleague, action: "schedule_replaced", before, after },
      { ...scope, ...byUser, action: "schedule_cleared", before: after, after: null },
    ]);
  });
});
