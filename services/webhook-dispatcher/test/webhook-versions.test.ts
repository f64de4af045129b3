import { afterAll, describe, expect, it } from "@jest/globals";
import { disableWebhook } from "../src/webhooks/webhook-store.ts";
import { makeDelivery, openDispatcher } from "./dispatcher-fixture.ts";

/** Versions of webhooks, and changes that are conditional on them. */

const dispatcher = await openDispatcher();
afterAll(() => dispatcher.close());
const replica = await dispatcher.startReplica();
const tenant = await dispatcher.newTenant(replica);

const send = (method: string, path: string, body?: object, ifMatch?: string) =>
  replica.call(path, {
    method,
    key: tenant.serverKey,
    ...(body && { body }),
    ...(ifMatch !== undefined && { headers: { "if-match": ifMatch } }),
  });
const get = (path: string) => send("GET", path);

let named = 0;
async function newWebhook(fields: object = {}) {
  named += 1;
  const created = await send("POST", tenant.path, {
    name: `Webhook ${named}`,
    url: "https://example.com/hooks",
    events: ["flag.toggled"],
    ...fields,
  });
  expect(created.status).toBe(201);
  return { id: created.body.id, path: `${tenant.path}/${created.body.id}`, created };
}

const auditedActions = async (id: string) =>
  (
    await dispatcher.admin`
      select message->>'action' as action from audit_outbox
      where message->>'webhook_id' = ${id} order by id`
  ).map(({ action }) => action);

const statusesOf = (answers: { status: number }[]) => answers.map(({ status }) => status).sort();

describe("the version of a webhook", () => {
  it("starts at 1, and is the ETag of the webhook", async () => {
    const { path, created } = await newWebhook();
    expect([created.body.version, created.headers.get("etag")]).toEqual([1, '"1"']);
    const read = await get(path);
    expect([read.body.version, read.headers.get("etag")]).toEqual([1, '"1"']);
  });

  it("rises by one with each change, also of the secret", async () => {
    const { path } = await newWebhook({ secret: "whisper" });
    const changes = [
      { name: `${path} renamed` },
      { url: "https://example.com/others" },
      { events: ["flag.created"] },
      { enabled: false },
      { secret: "shout", secret_overlap_seconds: 60 },
      { secret: null },
    ];
    let version = 1;
    for (const change of changes) {
      version += 1;
      const changed = await send("PATCH", path, change);
      expect([changed.body.version, changed.headers.get("etag")]).toEqual([
        version,
        `"${version}"`,
      ]);
    }
    expect((await get(path)).body.version).toBe(version);
  });

  it("stays the same if a request changes nothing", async () => {
    const { path } = await newWebhook({ secret: "whisper" });
    const repeated = await send("PATCH", path, { enabled: true, secret: "whisper" });
    expect(repeated.body.version).toBe(1);
  });

  it("rises when the dispatcher disables the webhook", async () => {
    const { id, path } = await newWebhook();
    const audit = { author: "webhook-dispatcher", newId: replica.newId, now: new Date() } as const;
    await replica.sql.begin((tx) => disableWebhook(tx, id, audit));
    expect((await get(path)).body).toMatchObject({ enabled: false, version: 2 });
  });
});

describe("a change with If-Match", () => {
  it("is made if the webhook has the version", async () => {
    const { path } = await newWebhook();
    expect((await send("PATCH", path, { enabled: false }, '"1"')).body.version).toBe(2);
    expect((await send("PUT", path, { enabled: true }, "*")).body.version).toBe(3);
    expect((await send("DELETE", path, undefined, '"2", "3"')).status).toBe(204);
    expect((await send("DELETE", path, undefined, '"3"')).status).toBe(404);
  });

  it.each([
    ["PATCH", { enabled: false, secret: "shout" }],
    ["DELETE", undefined],
  ])("of another version leaves everything unchanged: %s", async (method, body) => {
    const { id, path } = await newWebhook();
    const pending = makeDelivery(tenant, id, "pending");
    await dispatcher.admin`insert into deliveries ${dispatcher.admin(pending)}`;
    await send("PATCH", path, { url: "https://example.com/theirs" });
    const before = await dispatcher.admin`select * from webhooks where id = ${id}`;
    const rejected = await send(method, path, body, '"1"');
    expect(rejected.status).toBe(412);
    expect(rejected.headers.get("etag")).toBe('"2"');
    expect(rejected.body.error).toMatchObject({
      code: "CONFLICT_003",
      message: `If-Match does not name the present version of ${path}, which is "2". Read that again, then send the request again.`,
    });
    expect(await dispatcher.admin`select * from webhooks where id = ${id}`).toEqual(before);
    expect(await auditedActions(id)).toEqual(["webhook_created", "webhook_changed"]);
    const [delivery] = await dispatcher.admin`
      select status from deliveries where id = ${pending.id}`;
    expect(delivery).toEqual({ status: "pending" });
  });

  it("is rejected if the header is malformed", async () => {
    const { path } = await newWebhook();
    expect((await send("PATCH", path, { enabled: false }, "1")).status).toBe(400);
  });

  it("wins over all others with the same version that are made concurrently", async () => {
    const { path } = await newWebhook();
    const urls = Array.from({ length: 8 }, (_, index) => `https://example.com/${index}`);
    const answers = await Promise.all(urls.map((url) => send("PATCH", path, { url }, '"1"')));
    expect(statusesOf(answers)).toEqual([200, 412, 412, 412, 412, 412, 412, 412]);
    const won = answers.find(({ status }) => status === 200);
    expect((await get(path)).body).toEqual(won?.body);
  });

  it("or a deletion with the same version wins, never both", async () => {
    for (let round = 0; round < 8; round += 1) {
      const { path } = await newWebhook();
      const [changed, deleted] = await Promise.all([
        send("PATCH", path, { url: "https://example.com/mine" }, '"1"'),
        send("DELETE", path, undefined, '"1"'),
      ]);
      const isDeleted = deleted.status === 204;
      // The webhook may already be deleted when the change is checked.
      if (isDeleted) expect([404, 412]).toContain(changed.status);
      else expect([changed.status, deleted.status]).toEqual([200, 412]);
      expect((await get(path)).status).toBe(isDeleted ? 404 : 200);
    }
  });
});
