import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { cleanUp } from "../src/clean-up.ts";
import { openDispatcher } from "./dispatcher-fixture.ts";

/** Creation of webhooks with an `Idempotency-Key`, for clients that may have missed the response. */

const dispatcher = await openDispatcher();
afterAll(() => dispatcher.close());
const replica = await dispatcher.startReplica();
const tenant = await dispatcher.newTenant(replica);
afterEach(async () => {
  await dispatcher.admin`delete from webhooks`;
  await dispatcher.admin`delete from idempotency_keys`;
});

const aWebhook = (fields: object = {}) => ({
  name: "Chat",
  url: "https://example.com/hooks",
  events: ["flag.toggled"],
  ...fields,
});

const post = (body: unknown, idempotencyKey: string, key = tenant.serverKey) =>
  replica.call(tenant.path, {
    method: "POST",
    key,
    body,
    headers: { "idempotency-key": idempotencyKey },
  });

const rowsOf = (table: string) => dispatcher.admin`select * from ${dispatcher.admin(table)}`;

describe("a request that is repeated with its Idempotency-Key", () => {
  it("gets the response of the first request, and creates nothing", async () => {
    const body = aWebhook({ secret: "whisper" });
    const first = await post(body, "once");
    const second = await post(body, "once");
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body).toEqual(first.body);
    expect(second.headers.get("location")).toBe(`${tenant.path}/${first.body.id}`);
    expect(second.headers.get("etag")).toBe('"1"');
    expect(await rowsOf("webhooks")).toHaveLength(1);
  });

  it("creates one webhook if it is sent many times concurrently", async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => post(aWebhook(), "at once")));
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 201, 201]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  });
});

describe("an Idempotency-Key", () => {
  it.each([
    ["another name", { name: "Mail" }],
    ["another secret", { name: "Chat", secret: "shout" }],
    ["no secret", { name: "Chat", secret: null }],
  ])("is rejected with %s", async (_, fields) => {
    await post(aWebhook({ secret: "whisper" }), "taken");
    const rejected = await post(aWebhook({ secret: "whisper", ...fields }), "taken");
    expect(rejected).toMatchObject({ status: 409, body: { error: { code: "CONFLICT_001" } } });
    expect(await rowsOf("webhooks")).toHaveLength(1);
  });

  it("does not store error responses", async () => {
    expect((await post(aWebhook({ url: "ftp://example.com/" }), "again")).status).toBe(400);
    expect((await post(aWebhook(), "again")).status).toBe(201);
    expect((await post(aWebhook(), "name is taken")).status).toBe(409);
    await dispatcher.admin`delete from webhooks`;
    expect((await post(aWebhook(), "name is taken")).status).toBe(201);
  });

  it("is separate for each API key", async () => {
    const mine = await post(aWebhook(), "shared");
    const theirs = await post(aWebhook({ name: "Mail" }), "shared", tenant.otherServerKey);
    expect([mine.status, theirs.status]).toEqual([201, 201]);
  });

  it("stores nothing that reveals a secret or allows guessing it", async () => {
    await post(aWebhook({ secret: "whisper" }), "sealed");
    await dispatcher.admin`delete from webhooks`;
    await post(aWebhook({ secret: "whisper" }), "sealed", tenant.otherServerKey);
    const kept = await rowsOf("idempotency_keys");
    // The two requests have the same body, so a hash without the API key would be equal.
    expect(new Set(kept.map((row) => row.request_sha256)).size).toBe(2);
    for (const row of kept) {
      expect(row.answer.length).toBeGreaterThan(100);
      expect(row.answer.toString("latin1")).not.toContain("Chat");
    }
  });

  it("expires after a day, and its row is deleted", async () => {
    await post(aWebhook(), "yesterday");
    await dispatcher.admin`
      update idempotency_keys set created_at = created_at - interval '25 hours'`;
    await post(aWebhook({ name: "Mail" }), "today");
    await cleanUp(replica.sql, { retentionDays: 30 });
    expect(await rowsOf("idempotency_keys")).toMatchObject([{ idempotency_key: "today" }]);
  });
});
