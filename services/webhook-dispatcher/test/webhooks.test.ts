import { randomUUID } from "node:crypto";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import {
  cancelLeftovers,
  cancelledAtOnce,
  cancelledInARequest,
} from "../src/webhooks/cancel-deliveries.ts";
import {
  makeDelivery,
  openDispatcher,
  waitsForLock,
  webhooksPerProject,
} from "./dispatcher-fixture.ts";

/** The API of webhooks. These tests send no deliveries. */

const dispatcher = await openDispatcher();
afterAll(() => dispatcher.close());
const replica = await dispatcher.startReplica();
const tenant = await dispatcher.newTenant(replica);

const post = (path: string, body: unknown, key = tenant.serverKey) =>
  replica.call(path, { method: "POST", key, body });
const patch = (path: string, body: unknown, key = tenant.serverKey) =>
  replica.call(path, { method: "PATCH", key, body });
const get = (path: string, key = tenant.serverKey) => replica.call(path, { key });
const remove = (path: string, key = tenant.serverKey) =>
  replica.call(path, { method: "DELETE", key });

let named = 0;
function aWebhook(fields: object = {}) {
  named += 1;
  return {
    name: `Webhook ${named}`,
    url: "https://example.com/hooks",
    events: ["flag.toggled"],
    ...fields,
  };
}

async function newWebhook(fields: object = {}) {
  const { status, body } = await post(tenant.path, aWebhook(fields));
  expect(status).toBe(201);
  return { path: `${tenant.path}/${body.id}`, body };
}

async function rowOf(id: string) {
  const [row] = await dispatcher.admin`select * from webhooks where id = ${id}`;
  return row;
}

describe("creating a webhook", () => {
  it("returns the webhook and its location", async () => {
    const given = aWebhook({ events: ["flag.created", "flag_state.updated"], secret: "whisper" });
    const created = await post(tenant.path, given);
    expect(created.status).toBe(201);
    expect(created.headers.get("location")).toBe(`${tenant.path}/${created.body.id}`);
    expect(created.body).toEqual({
      id: expect.any(String),
      project_id: tenant.projectId,
      name: given.name,
      url: given.url,
      events: ["flag.created", "flag_state.updated"],
      enabled: true,
      trace_context: false,
      has_secret: true,
      version: 1,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: created.body.created_at,
    });
    expect(await get(`${tenant.path}/${created.body.id}`)).toMatchObject({
      status: 200,
      body: created.body,
    });
  });

  it("accepts a disabled webhook without a secret", async () => {
    const { body } = await newWebhook({ enabled: false, secret: null });
    expect(body).toMatchObject({ enabled: false, has_secret: false });
  });

  it("accepts a webhook that continues traces", async () => {
    const { path, body } = await newWebhook({ trace_context: true });
    expect(body.trace_context).toBe(true);
    expect((await get(path)).body.trace_context).toBe(true);
  });

  it("rejects a name that exists in the project, but not one of another project", async () => {
    const given = aWebhook();
    expect((await post(tenant.path, given)).status).toBe(201);
    expect(await post(tenant.path, given)).toMatchObject({
      status: 409,
      body: { error: { code: "CONFLICT_001" } },
    });
    const other = await dispatcher.newTenant(replica);
    expect((await post(other.path, given, other.serverKey)).status).toBe(201);
  });

  it("accepts one of many concurrent requests with the same name", async () => {
    const given = aWebhook();
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(tenant.path, given)));
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([201, 409, 409, 409, 409, 409, 409, 409]);
  });

  it("is limited per project, even for concurrent requests", async () => {
    const other = await dispatcher.newTenant(replica);
    const attempts = Array.from({ length: webhooksPerProject + 5 }, () =>
      post(other.path, aWebhook(), other.serverKey),
    );
    const answers = await Promise.all(attempts);
    const rejected = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(webhooksPerProject);
    expect(rejected).toHaveLength(5);
    expect(rejected[0]?.body.error).toMatchObject({
      code: "RATE_001",
      message: `The limit of a project is ${webhooksPerProject} webhooks, and this one has ${webhooksPerProject}. Delete one, or have the operator raise WEBHOOKS_PER_PROJECT.`,
    });
    expect(rejected[0]?.headers.get("retry-after")).toBeNull();
    expect(rejected[0]?.headers.get("ratelimit")).toBe('"webhooks";r=0');
    const { body } = await get(other.path, other.serverKey);
    await remove(`${other.path}/${body.webhooks[0].id}`, other.serverKey);
    expect((await post(other.path, aWebhook(), other.serverKey)).status).toBe(201);
  });
});

/** Invalid fields, each with the path that the error message must name. */
const badFields = [
  { name: "an empty name", fields: { name: "" }, at: "/name" },
  { name: "a blank name", fields: { name: "  " }, at: "/name" },
  { name: "a name of 201 characters", fields: { name: "n".repeat(201) }, at: "/name" },
  { name: "no events", fields: { events: [] }, at: "/events" },
  { name: "an unknown event", fields: { events: ["flag.exploded"] }, at: "/events/0" },
  { name: "an event twice", fields: { events: ["flag.created", "flag.created"] }, at: "/events" },
  { name: "a text for events", fields: { events: "flag.created" }, at: "/events" },
  { name: "a relative URL", fields: { url: "/hooks" }, at: "/url" },
  { name: "a URL without a scheme", fields: { url: "example.com/hooks" }, at: "/url" },
  { name: "another scheme", fields: { url: "ftp://example.com/" }, at: "/url" },
  { name: "a script", fields: { url: "javascript:alert(1)" }, at: "/url" },
  { name: "a URL without a host", fields: { url: "https:///hooks" }, at: "/url" },
  { name: "a user name in the URL", fields: { url: "https://me@example.com/" }, at: "/url" },
  { name: "a password in the URL", fields: { url: "https://:pw@example.com/" }, at: "/url" },
  { name: "a blank in the URL", fields: { url: " https://example.com/" }, at: "/url" },
  { name: "a line break in the URL", fields: { url: "https://example.com/\nhooks" }, at: "/url" },
  { name: "an ill-formed URL", fields: { url: "https://example.com/\ud800" }, at: "/url" },
  { name: "a port of another protocol", fields: { url: "https://example.com:6379/" }, at: "/url" },
  { name: "a URL of 2,049 characters", fields: { url: longUrl(2_049) }, at: "/url" },
  { name: "an empty secret", fields: { secret: "" }, at: "/secret" },
  { name: "a secret of 257 bytes", fields: { secret: "s".repeat(257) }, at: "/secret" },
  {
    name: "a secret of 257 bytes in 129 characters",
    fields: { secret: `s${"é".repeat(128)}` },
    at: "/secret",
  },
  { name: "an ill-formed secret", fields: { secret: "half \ud800 a pair" }, at: "/secret" },
  { name: "a number for a secret", fields: { secret: 7 }, at: "/secret" },
  { name: "a text for enabled", fields: { enabled: "yes" }, at: "/enabled" },
  { name: "a misspelt field", fields: { event: ["flag.created"] }, at: "/event" },
];

function longUrl(length: number): string {
  const start = "https://example.com/";
  return start + "a".repeat(length - start.length);
}

describe("an invalid webhook", () => {
  it.each(badFields)("is not created: $name", async ({ fields, at }) => {
    const { status, body } = await post(tenant.path, aWebhook(fields));
    expect(status).toBe(400);
    expect(body.error.code).toBe("VALIDATION_001");
    expect(body.error.message.split(" ")[0]).toBe(at);
  });

  it.each(badFields)("is not the result of a change: $name", async ({ fields, at }) => {
    const webhook = await newWebhook();
    const { status, body } = await patch(webhook.path, fields);
    expect(status).toBe(400);
    expect(body.error.message.split(" ")[0]).toBe(at);
    expect((await get(webhook.path)).body).toEqual(webhook.body);
  });

  it.each(["name", "url", "events"])("is not created without %s", async (field) => {
    const { status, body } = await post(tenant.path, { ...aWebhook(), [field]: undefined });
    expect(status).toBe(400);
    expect(body.error.message).toBe(`/${field} is required`);
  });

  it("causes an error response without its secret", async () => {
    const secret = `MARKED ${"s".repeat(300)}`;
    const { body } = await post(tenant.path, aWebhook({ secret }));
    expect(JSON.stringify(body)).not.toContain("MARKED");
  });
});

describe("a webhook with values at the limits", () => {
  it.each([
    { name: "a secret of 256 bytes in 128 characters", fields: { secret: "é".repeat(128) } },
    { name: "a secret of one byte", fields: { secret: "s" } },
    { name: "a URL of 2,048 characters", fields: { url: longUrl(2_048) } },
    { name: "a port and a query", fields: { url: "https://example.com:8443/a?b=c" } },
    { name: "http in development", fields: { url: "http://example.com/" } },
    {
      name: "every event",
      fields: {
        events: [
          "flag.created",
          "flag.updated",
          "flag.deleted",
          "flag.toggled",
          "flag_state.updated",
        ],
      },
    },
  ])("is created: $name", async ({ fields }) => {
    const { body } = await newWebhook(fields);
    expect(body).toMatchObject("secret" in fields ? { has_secret: true } : fields);
  });
});

describe("the URL of a webhook", () => {
  const privateUrls = [
    "https://127.0.0.1/",
    "https://localhost/",
    "https://10.0.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[fd00::1]/",
  ];

  it("must not be private, in production and in development", async () => {
    for (const httpsOnly of [true, false]) {
      const strict = await dispatcher.startReplica({ rules: { httpsOnly, allowPrivate: false } });
      const other = await dispatcher.newTenant(strict);
      for (const url of privateUrls) {
        const body = aWebhook({ url });
        const answer = await strict.call(other.path, {
          method: "POST",
          key: other.serverKey,
          body,
        });
        expect({ url, status: answer.status }).toEqual({ url, status: 400 });
        expect(answer.body.error.message).toBe("/url must have a public host.");
      }
      await strict.stop();
    }
  });

  it("must be https in production", async () => {
    const strict = await dispatcher.startReplica({
      rules: { httpsOnly: true, allowPrivate: false },
    });
    const other = await dispatcher.newTenant(strict);
    const create = (url: string) =>
      strict.call(other.path, { method: "POST", key: other.serverKey, body: aWebhook({ url }) });
    expect((await create("http://example.com/")).body.error.message).toBe(
      "/url must begin with https://.",
    );
    expect((await create("https://example.com/")).status).toBe(201);
    await strict.stop();
  });
});

describe("changing a webhook", () => {
  it.each(["PATCH", "PUT"])("by %s changes only the given fields", async (method) => {
    const webhook = await newWebhook({ secret: "whisper" });
    const changed = await replica.call(webhook.path, {
      method,
      key: tenant.serverKey,
      body: { url: "https://example.com/other", events: ["flag.deleted"] },
    });
    expect(changed.status).toBe(200);
    const { updated_at: updatedAt, ...rest } = changed.body;
    const { updated_at: updatedBefore, ...before } = webhook.body;
    expect(rest).toEqual({
      ...before,
      url: "https://example.com/other",
      events: ["flag.deleted"],
      version: 2,
    });
    expect(Date.parse(updatedAt)).toBeGreaterThan(Date.parse(updatedBefore));
    expect((await get(webhook.path)).body).toEqual(changed.body);
  });

  it("with the current values changes nothing", async () => {
    const { path, body } = await newWebhook({ secret: "whisper" });
    const same = { name: body.name, url: body.url, events: body.events, secret: "whisper" };
    expect((await patch(path, {})).body).toEqual(body);
    expect((await patch(path, same)).body).toEqual(body);
  });

  it("rejects the name of another webhook, but not its own name", async () => {
    const [one, other] = [await newWebhook(), await newWebhook()];
    const rejected = await patch(one.path, { name: other.body.name, url: "https://example.com/x" });
    expect(rejected).toMatchObject({ status: 409, body: { error: { code: "CONFLICT_001" } } });
    expect((await get(one.path)).body).toEqual(one.body);
    expect((await patch(one.path, { name: one.body.name })).status).toBe(200);
  });

  it("accepts one of many concurrent changes to the same name", async () => {
    const webhooks = await Promise.all(Array.from({ length: 6 }, () => newWebhook()));
    const { name } = aWebhook();
    const answers = await Promise.all(webhooks.map(({ path }) => patch(path, { name })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  it("loses no concurrent change", async () => {
    const webhook = await newWebhook();
    await Promise.all([
      patch(webhook.path, { url: "https://example.com/new" }),
      patch(webhook.path, { events: ["flag.deleted"] }),
      patch(webhook.path, { enabled: false }),
      patch(webhook.path, { secret: "whisper" }),
    ]);
    expect((await get(webhook.path)).body).toMatchObject({
      url: "https://example.com/new",
      events: ["flag.deleted"],
      enabled: false,
      has_secret: true,
    });
  });
});

describe("a new secret", () => {
  it("replaces the previous one immediately without an overlap", async () => {
    const webhook = await newWebhook({ secret: "old" });
    const before = await rowOf(webhook.body.id);
    await patch(webhook.path, { secret: "new" });
    const row = await rowOf(webhook.body.id);
    expect(row?.secret).not.toEqual(before?.secret);
    expect(row).toMatchObject({ previous_secret: null, previous_secret_ends_at: null });
  });

  it("keeps the previous one valid for the overlap, even if the request is repeated", async () => {
    const webhook = await newWebhook({ secret: "old" });
    const before = await rowOf(webhook.body.id);
    const change = { secret: "new", secret_overlap_seconds: 3_600 };
    const changed = await patch(webhook.path, change);
    const row = await rowOf(webhook.body.id);
    expect(row?.previous_secret).toEqual(before?.secret);
    const updatedAt = Date.parse(changed.body.updated_at);
    expect(row?.previous_secret_ends_at.getTime()).toBe(updatedAt + 3_600_000);
    expect((await patch(webhook.path, change)).body).toEqual(changed.body);
    expect(await rowOf(webhook.body.id)).toEqual(row);
  });

  it("overlaps only with the one immediately before it", async () => {
    const webhook = await newWebhook({ secret: "first" });
    await patch(webhook.path, { secret: "second", secret_overlap_seconds: 3_600 });
    const between = await rowOf(webhook.body.id);
    await patch(webhook.path, { secret: "third", secret_overlap_seconds: 60 });
    expect((await rowOf(webhook.body.id))?.previous_secret).toEqual(between?.secret);
  });

  it("overlaps with nothing if it is the first", async () => {
    const webhook = await newWebhook();
    const change = { secret: "first", secret_overlap_seconds: 3_600 };
    expect((await patch(webhook.path, change)).body.has_secret).toBe(true);
    expect(await rowOf(webhook.body.id)).toMatchObject({ previous_secret: null });
  });

  it("ends an overlap if the request is repeated without one", async () => {
    const webhook = await newWebhook({ secret: "old" });
    await patch(webhook.path, { secret: "new", secret_overlap_seconds: 3_600 });
    await patch(webhook.path, { secret: "new" });
    expect(await rowOf(webhook.body.id)).toMatchObject({ previous_secret: null });
  });

  it("of null deletes both the current and the previous one", async () => {
    const webhook = await newWebhook({ secret: "old" });
    await patch(webhook.path, { secret: "new", secret_overlap_seconds: 3_600 });
    const { body } = await patch(webhook.path, { secret: null });
    expect(body.has_secret).toBe(false);
    expect(await rowOf(webhook.body.id)).toMatchObject({ secret: null, previous_secret: null });
  });

  it.each([
    { name: "an overlap alone", body: { secret_overlap_seconds: 60 } },
    { name: "an overlap with no secret", body: { secret: null, secret_overlap_seconds: 60 } },
    { name: "a negative overlap", body: { secret: "new", secret_overlap_seconds: -1 } },
    { name: "more than 7 days", body: { secret: "new", secret_overlap_seconds: 604_801 } },
    { name: "half a second", body: { secret: "new", secret_overlap_seconds: 0.5 } },
  ])("is rejected with $name", async ({ body }) => {
    const webhook = await newWebhook({ secret: "old" });
    const before = await rowOf(webhook.body.id);
    const rejected = await patch(webhook.path, body);
    expect(rejected.status).toBe(400);
    expect(rejected.body.error.message.split(" ")[0]).toBe("/secret_overlap_seconds");
    expect(await rowOf(webhook.body.id)).toEqual(before);
  });
});

describe("disabling a webhook", () => {
  it("cancels its open deliveries and no others", async () => {
    const webhook = await newWebhook();
    const statuses = ["pending", "retrying", "delivering", "delivered", "failed", "cancelled"];
    const expired = { next_attempt_at: new Date() };
    const rows = [
      ...statuses.map((status) => makeDelivery(tenant, webhook.body.id, status)),
      makeDelivery(tenant, webhook.body.id, "delivering", expired),
    ];
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(rows)}`;
    expect((await patch(webhook.path, { enabled: false })).body.enabled).toBe(false);
    const { body } = await get(`${webhook.path}/deliveries`);
    const statusNow = rows.map(
      ({ id }) => body.deliveries.find((delivery: { id: string }) => delivery.id === id).status,
    );
    const after = ["cancelled", "cancelled", "delivering", "delivered", "failed", "cancelled"];
    expect(statusNow).toEqual([...after, "cancelled"]);
  });

  it.each(["PATCH", "DELETE"])(
    "by %s cancels a delivery that is created concurrently",
    async (method) => {
      const webhook = await newWebhook();
      const row = makeDelivery(tenant, webhook.body.id, "pending");
      let answer: ReturnType<typeof replica.call> | undefined;
      await dispatcher.admin.begin(async (tx) => {
        // The consumer of events holds this lock while it creates deliveries.
        await tx`select from webhooks where id = ${webhook.body.id} for share`;
        const body = method === "PATCH" ? { enabled: false } : undefined;
        answer = replica.call(webhook.path, { method, key: tenant.serverKey, body });
        await eventually(() => waitsForLock(dispatcher), { because: "the request waits" });
        await tx`insert into deliveries ${tx(row)}`;
      });
      expect([200, 204]).toContain((await answer)?.status);
      const [after] = await dispatcher.admin`select status from deliveries where id = ${row.id}`;
      expect(after?.status).toBe("cancelled");
    },
  );

  it("cancels deliveries for good, even if the webhook is enabled again", async () => {
    const webhook = await newWebhook();
    const row = makeDelivery(tenant, webhook.body.id, "pending");
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(row)}`;
    await patch(webhook.path, { enabled: false });
    await patch(webhook.path, { enabled: true });
    expect((await get(`${webhook.path}/deliveries/${row.id}`)).body).toMatchObject({
      status: "cancelled",
      next_attempt_at: null,
    });
  });

  it("does not cancel redeliveries", async () => {
    const webhook = await newWebhook({ enabled: false });
    const rows = [
      makeDelivery(tenant, webhook.body.id, "pending", { redelivery: true }),
      makeDelivery(tenant, webhook.body.id, "pending"),
    ];
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(rows)}`;
    await patch(webhook.path, { enabled: false });
    expect(await openOf(webhook)).toEqual([rows[0]?.id]);
  });

  it("is finished by another replica if its process fails in between", async () => {
    const [off, on] = [await newWebhook({ enabled: false }), await newWebhook()];
    const kept = makeDelivery(tenant, on.body.id, "pending");
    const rows = [kept, makeDelivery(tenant, off.body.id, "retrying")];
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(rows)}`;
    await cancelLeftovers(replica.sql);
    expect(await openOf(off)).toEqual([]);
    expect(await openOf(on)).toEqual([kept.id]);
  });

  it("is finished before the webhook is enabled again", async () => {
    const webhook = await newWebhook({ enabled: false });
    const row = makeDelivery(tenant, webhook.body.id, "retrying");
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(row)}`;
    await patch(webhook.path, { enabled: true });
    expect(await openOf(webhook)).toEqual([]);
  });

  async function putBacklog({ body }: { body: { id: string } }, count: number) {
    const { admin } = dispatcher;
    await admin`
      insert into deliveries (id, webhook_id, organization_id, project_id, event_id, event, payload,
        status, created_at, next_attempt_at)
      select gen_random_uuid(), ${body.id}, ${tenant.organizationId}, ${tenant.projectId},
        gen_random_uuid(), 'flag.toggled', '{}', 'pending', now(), now()
      from generate_series(1, ${count})`;
  }

  async function openOf({ body }: { body: { id: string } }): Promise<string[]> {
    const rows = await dispatcher.admin<{ id: string }[]>`
      select id from deliveries
      where webhook_id = ${body.id} and status in ('pending', 'retrying')`;
    return rows.map(({ id }) => id);
  }

  it("does not delay events while leftovers are cancelled before the webhook is enabled again", async () => {
    const webhook = await newWebhook({ enabled: false });
    const row = makeDelivery(tenant, webhook.body.id, "retrying");
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(row)}`;
    let answer: ReturnType<typeof replica.call> | undefined;
    await dispatcher.admin.begin(async (tx) => {
      // This lock delays the cancellation, as a large backlog would.
      await tx`select from deliveries where id = ${row.id} for update`;
      answer = patch(webhook.path, { enabled: true });
      await eventually(() => waitsForLock(dispatcher), { because: "the leftover is cancelled" });
      // The consumer of events takes this lock. It must be free.
      await tx`select from webhooks where id = ${webhook.body.id} for share nowait`;
    });
    expect((await answer)?.body.enabled).toBe(true);
    expect(await openOf(webhook)).toEqual([]);
  });

  it("responds before a very large backlog is cancelled, and the rest is cancelled later", async () => {
    const webhook = await newWebhook();
    await putBacklog(webhook, cancelledAtOnce + cancelledInARequest + 1);
    await patch(webhook.path, { enabled: false });
    expect(await openOf(webhook)).toHaveLength(1);
    await cancelLeftovers(replica.sql);
    expect(await openOf(webhook)).toEqual([]);
  });

  it.each([
    { method: "PATCH", body: { enabled: false } },
    { method: "DELETE", body: undefined },
  ])("by $method cancels a backlog that is larger than one batch", async ({ method, body }) => {
    const webhook = await newWebhook();
    await putBacklog(webhook, 2 * cancelledAtOnce + 1);
    await replica.call(webhook.path, { method, key: tenant.serverKey, body });
    expect(await openOf(webhook)).toEqual([]);
  });
});

describe("deleting a webhook", () => {
  it("cancels its open deliveries, and hides the others", async () => {
    const webhook = await newWebhook();
    const rows = ["pending", "delivered"].map((status) =>
      makeDelivery(tenant, webhook.body.id, status),
    );
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(rows)}`;
    expect((await remove(webhook.path)).status).toBe(204);
    for (const path of [
      webhook.path,
      `${webhook.path}/deliveries`,
      `${webhook.path}/deliveries/${rows[1]?.id}`,
    ])
      expect((await get(path)).body.error.code).toBe("NOT_FOUND_001");
    expect((await remove(webhook.path)).status).toBe(404);
    expect((await patch(webhook.path, { enabled: true })).status).toBe(404);
    const kept = await dispatcher.admin`
      select status from deliveries where webhook_id = ${webhook.body.id} order by id`;
    expect(kept.map(({ status }) => status)).toEqual(["cancelled", "delivered"]);
  });

  it("frees its name", async () => {
    const given = aWebhook();
    const { body } = await post(tenant.path, given);
    await remove(`${tenant.path}/${body.id}`);
    expect((await post(tenant.path, given)).status).toBe(201);
  });
});

describe("listing webhooks", () => {
  it("returns all of the project, in the order of creation", async () => {
    const other = await dispatcher.newTenant(replica);
    const made = [];
    for (const name of ["Zebra", "Ant"])
      made.push((await post(other.path, aWebhook({ name }), other.serverKey)).body);
    expect((await get(other.path, other.serverKey)).body).toEqual({ webhooks: made });
  });
});

describe("access to the routes", () => {
  it("answers 404 for unknown and for invalid ids", async () => {
    for (const id of [randomUUID(), "nothing", "%00"])
      expect((await get(`${tenant.path}/${id}`)).body.error.code).toBe("NOT_FOUND_001");
  });

  /** Every route, once. */
  const routes = (path: string, webhookId: string, deliveryId: string) => [
    { method: "GET", path },
    { method: "POST", path, body: aWebhook() },
    { method: "GET", path: `${path}/${webhookId}` },
    { method: "PATCH", path: `${path}/${webhookId}`, body: { enabled: false } },
    { method: "PUT", path: `${path}/${webhookId}`, body: { enabled: false } },
    { method: "DELETE", path: `${path}/${webhookId}` },
    { method: "POST", path: `${path}/${webhookId}/test` },
    { method: "GET", path: `${path}/${webhookId}/deliveries` },
    { method: "GET", path: `${path}/${webhookId}/deliveries/${deliveryId}` },
    { method: "POST", path: `${path}/${webhookId}/deliveries/${deliveryId}/redeliver` },
  ];

  async function everyRoute(key: string, ...of: Parameters<typeof routes>) {
    const codes: string[] = [];
    for (const { path, ...options } of routes(...of))
      codes.push((await replica.call(path, { ...options, key })).body.error.code);
    return new Set(codes);
  }

  async function aDelivery() {
    const webhook = await newWebhook();
    const row = makeDelivery(tenant, webhook.body.id, "failed");
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(row)}`;
    return { webhook, row };
  }

  it("requires a server key that is not restricted to an environment", async () => {
    const { webhook, row } = await aDelivery();
    const at = [tenant.path, webhook.body.id, row.id] as const;
    expect(await everyRoute("hs_nobody", ...at)).toEqual(new Set(["AUTH_001"]));
    expect(await everyRoute(tenant.clientKey, ...at)).toEqual(new Set(["AUTH_002"]));
    expect(await everyRoute(tenant.environmentOnlyKey, ...at)).toEqual(new Set(["AUTH_002"]));
    expect((await get(webhook.path)).body).toEqual(webhook.body);
  });

  it("accepts ids in upper case", async () => {
    const webhook = await newWebhook();
    const path = `/api/v1/projects/${tenant.projectId.toUpperCase()}/webhooks/${webhook.body.id.toUpperCase()}`;
    expect((await get(path)).body).toEqual(webhook.body);
  });
});

describe("the outbox for the audit log", () => {
  const of = (webhookId: string) => dispatcher.admin`
    select message from audit_outbox where message ->> 'webhook_id' = ${webhookId} order by id`;

  it("contains each change, with the user, the key and a masked URL", async () => {
    const secretUrl = "https://hooks.example.com/in/secret-1/secret-2/secret-3?key=secret-4";
    const { path, body } = await newWebhook({ url: secretUrl, secret: "secret-first-value" });
    const movedUrl = "https://hooks.example.com/in/secret-1/secret-2/secret-5/";
    await patch(path, { url: movedUrl, secret: "secret-second-value" }, tenant.otherServerKey);
    await patch(path, { name: body.name });
    expect((await patch(path, { url: "nowhere" })).status).toBe(400);
    await remove(path);

    const messages = (await of(body.id)).map(({ message }) => message);
    const masked = {
      name: body.name,
      url: "https://hooks.example.com/***/***/***/***",
      events: body.events,
      enabled: true,
      has_secret: true,
    };
    const moved = { ...masked, url: "https://hooks.example.com/***/***/***/***/" };
    const [first, second] = [tenant.serverKey, tenant.otherServerKey].map((key) => ({
      organization_id: tenant.organizationId,
      project_id: tenant.projectId,
      service: "webhook-dispatcher",
      user_id: tenant.userId,
      api_key_id: key.slice(3, 19),
      flag_id: null,
      environment_id: null,
    }));
    expect(messages).toMatchObject([
      { ...first, action: "webhook_created", before: null, after: masked },
      {
        ...second,
        action: "webhook_changed",
        before: masked,
        after: { ...moved, changed_fields: ["url", "secret"] },
      },
      { ...first, action: "webhook_deleted", before: moved, after: null },
    ]);
    expect(JSON.stringify(messages)).not.toMatch(/secret-/);
  });
});
