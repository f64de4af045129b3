import { createHash } from "node:crypto";
import { bytesOfHex, compileMembership } from "@halyard/evaluation";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readFullState } from "../../src/publishing/full-state.ts";
import { type Management, openManagement, seedProject } from "../management-fixture.ts";
import { audiencesOf } from "./audience-fixture.ts";

let management: Management;
let project: Awaited<ReturnType<typeof seedProject>>;
let given: ReturnType<typeof audiencesOf>;
beforeAll(async () => {
  management = await openManagement();
  project = await seedProject(management);
  given = audiencesOf(management, project);
});
afterAll(() => management.close());

/** Returns the chunks that the newest entry of an audience names, from the tables that a rebuild reads. */
async function publishedList(key: string) {
  const id = await given.idOf(key);
  const chunks = new Map<string, Buffer>();
  let list: { count: number; key: string; chunks: string[]; attribute: string } | undefined;
  for await (const page of readFullState(management.sql))
    for (const { address, value } of page) {
      if (address.kind === "chunk" && "data" in value && address.audienceId === id)
        chunks.set(address.sha256, Buffer.from(value.data, "base64"));
      if (address.kind === "audience" && "match" in value && address.audienceId === id)
        list = value.list;
    }
  if (list === undefined) throw new Error(`${key} has no list`);
  const bytes = list.chunks.map((sha256) => chunks.get(sha256) ?? Buffer.alloc(0));
  return { list, bytes, has: compileMembership(list, bytes) };
}

async function entriesIn(key: string): Promise<number> {
  const [row] = await management.sql<[{ count: number }]>`
    select count(*)::integer as count from audience_members as stored
    join audiences as audience on audience.list_id = stored.list_id
    where audience.project_id = ${project.projectId} and audience.key = ${key}`;
  return row.count;
}

async function unusedLists(): Promise<number> {
  return (await management.sql`select from unused_lists`).count;
}

describe("uploading a list", () => {
  it("replaces the list, and answers with its number of entries", async () => {
    await given.create({ key: "uploaded" });
    const { status, headers, body } = await given.upload("uploaded", "ada\ngrace\nada\n");
    expect({ status, tag: headers.get("etag") }).toEqual({ status: 200, tag: '"2"' });
    expect(body).toMatchObject({ version: 2, list: { attribute: "id", count: 2 } });
    const again = await given.upload("uploaded", '"alan"\n', {
      type: "application/x-ndjson; charset=utf-8",
      query: "?attribute=email",
    });
    expect(again.body).toMatchObject({ version: 3, list: { attribute: "email", count: 1 } });
    expect(await given.hasMember("uploaded", "alan")).toBe(true);
    expect(await given.hasMember("uploaded", "ada")).toBe(false);
  });

  it("publishes fingerprints, the chunks before the audience that names them", async () => {
    await given.create({ key: "fingerprints" });
    await given.upload("fingerprints", "Ada\ngrace\n");
    const { list, bytes, has } = await publishedList("fingerprints");
    expect(list).toMatchObject({
      attribute: "id",
      count: 2,
      key: expect.stringMatching(/^.{32}$/),
    });
    expect([has("Ada"), has("ada"), has("grace")]).toEqual([true, false, true]);
    expect(bytes.map((chunk) => createHash("sha256").update(chunk).digest("hex"))).toEqual(
      list.chunks,
    );
    const id = await given.idOf("fingerprints");
    const rows = await management.sql<{ subject: string }[]>`
      select subject from outbox where subject like ${`%${id}%`} order by id`;
    expect(rows.map(({ subject }) => subject.split(".")[1])).toEqual([
      "audience",
      "chunk",
      "audience",
    ]);
  });

  it("publishes tombstones of the chunks of the former list", async () => {
    await given.create({ key: "former" });
    await given.upload("former", "ada\n");
    const { list } = await publishedList("former");
    await given.upload("former", "grace\n");
    const subject = `${project.organizationId}.chunk.${await given.idOf("former")}.${list.chunks[0]}`;
    const rows = await management.sql`
      select from outbox where subject = ${subject} and tombstone`;
    expect(rows.count).toBe(1);
  });

  it.each([
    ["a wrong line", "ada\n,x\n", {}, 400, "Line 2 must have an entry"],
    ["another type", "[]", { type: "application/json" }, 415, "text/csv or application/x-ndjson"],
    ["another charset", "a", { type: "text/csv; charset=latin1" }, 415, "UTF-8"],
    ["compression", "a", { headers: { "content-encoding": "gzip" } }, 415, "compressed"],
    ["another version", "a\n", { headers: { "if-match": '"1"' } }, 412, "If-Match"],
    ["an unknown query parameter", "a\n", { query: "?headers=present" }, 400, "/headers"],
  ])("is rejected with %s, and keeps the list", async (_, body, options, status, message) => {
    const key = `kept-${status}-${message.length}`;
    await given.create({ key });
    await given.upload(key, "old\n");
    const answer = await given.upload(key, body, options);
    expect(answer).toMatchObject({ status, body: { error: {} } });
    expect(answer.body.error.message).toContain(message);
    expect(await given.read(key)).toMatchObject({ version: 2, list: { count: 1 } });
    expect(await given.hasMember(key, "old")).toBe(true);
  });

  it("does not name an entry in a problem", async () => {
    await given.create({ key: "discreet" });
    const answer = await given.upload("discreet", `ada\nsecret-entry${"x".repeat(600)}\n`);
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).not.toContain("secret");
  });

  it("is limited to one at a time of an organization", async () => {
    await given.create({ key: "concurrent" });
    await eventually(async () => (await unusedLists()) === 0);
    const { request, answer } = given.openUpload("concurrent");
    request.write("ada\n");
    await eventually(async () => (await unusedLists()) > 0, { because: "the upload has begun" });
    const rejected = await given.upload("concurrent", "grace\n");
    expect(rejected.status).toBe(429);
    expect(rejected.headers.get("retry-after")).toBe("5");
    request.end("alan\n");
    expect(await answer).toMatchObject({ status: 200 });
    expect((await given.read("concurrent")).list.count).toBe(2);
  });

  it("keeps the list if the client disconnects, and removes what was written", async () => {
    await given.create({ key: "interrupted" });
    await given.upload("interrupted", "old\n");
    await eventually(async () => (await unusedLists()) === 0);
    const { request } = given.openUpload("interrupted");
    request.on("error", () => undefined);
    request.write("user\n".repeat(20_000));
    await eventually(async () => (await unusedLists()) > 0, { because: "the upload has begun" });
    request.destroy();
    await eventually(async () => (await unusedLists()) === 0, {
      because: "the entries of the upload are removed",
    });
    expect(await given.hasMember("interrupted", "old")).toBe(true);
    expect((await given.upload("interrupted", "new\n")).status).toBe(200);
  });

  it("is forbidden to a key with environment_only, before the body is read", async () => {
    await given.create({ key: "guarded" });
    const path = `/api/v1/projects/${project.projectId}/environments/${project.environmentId}/keys`;
    const body = { kind: "server", name: "CI", environment_only: true };
    const { body: issued } = await given.call(path, { method: "POST", body });
    await eventually(() => management.directory.find(issued.id, Date.now()) !== undefined);
    const answer = await given.upload("guarded", "ada\n", { uploadKey: issued.key });
    expect(answer.status).toBe(403);
  });

  it("is recorded with numbers of entries only", async () => {
    await given.create({ key: "counted" });
    await given.upload("counted", "ada\ngrace\n");
    await given.change("counted", { add: ["alan", "ada"], remove: ["grace", "nobody"] });
    const { body } = await given.call(given.path("counted", "/history"));
    expect(body.history).toMatchObject([
      { version: 3, change: "list", list: { count: 2 }, added: 1, removed: 1 },
      { version: 2, change: "list", list: { attribute: "id", count: 2 } },
      { version: 1, change: "created", list: null, match: [] },
    ]);
    expect(body.history.filter((entry: object) => "match" in entry)).toHaveLength(1);
    const audit = await given.call(
      `/api/v1/projects/${project.projectId}/changes?action=audience_list_changed&limit=1`,
    );
    expect(audit.body.changes[0]).toMatchObject({
      audience_key: "counted",
      before: { list: { count: 2 } },
      after: { list: { count: 2 }, added: 1, removed: 1 },
    });
    const events = await given.events("counted");
    expect(events.map(({ change }) => change)).toEqual(["created", "list", "list"]);
    for (const text of [body, audit.body, events].map((shown) => JSON.stringify(shown)))
      expect(text).not.toMatch(/"(?:ada|alan|grace|nobody)"/);
  });
});

describe("changing entries", () => {
  it("creates a list of ids", async () => {
    await given.create({ key: "begun" });
    const answer = await given.change("begun", { add: ["ada"] });
    expect(answer.body).toMatchObject({ version: 2, list: { attribute: "id", count: 1 } });
    const { has } = await publishedList("begun");
    expect([has("ada"), has("grace")]).toEqual([true, false]);
  });

  it("has no effect for entries that the list has, and for others that it lacks", async () => {
    await given.create({ key: "idle" });
    await given.upload("idle", "ada\n");
    const answer = await given.change("idle", { add: ["ada"], remove: ["grace"] });
    expect(answer.body).toMatchObject({ version: 2, list: { count: 1 } });
  });

  it("leaves an empty list without chunks", async () => {
    await given.create({ key: "emptied" });
    await given.upload("emptied", "ada\n");
    const answer = await given.change("emptied", { remove: ["ada"] });
    expect(answer.body).toMatchObject({ list: { attribute: "id", count: 0 } });
    expect((await publishedList("emptied")).list.chunks).toEqual([]);
  });

  it("happens once for an idempotency key", async () => {
    await given.create({ key: "repeated" });
    const send = () =>
      given.change("repeated", { add: ["ada"] }, { "idempotency-key": "add-once" });
    const [first, second] = [await send(), await send()];
    expect(second.body).toEqual(first.body);
    expect(await given.read("repeated")).toMatchObject({ version: 2 });
  });

  it("publishes only the chunks of the changed entries", async () => {
    await given.create({ key: "chunked" });
    const lines = Array.from({ length: 70_000 }, (_, index) => `user-${index}\n`).join("");
    await given.upload("chunked", lines);
    const before = (await publishedList("chunked")).list.chunks;
    await given.change("chunked", { add: ["one-more"] });
    const { list, has } = await publishedList("chunked");
    expect(before).toHaveLength(2);
    expect(list.chunks.filter((sha256) => !before.includes(sha256))).toHaveLength(1);
    expect([has("one-more"), has("user-0"), has("user-69999")]).toEqual([true, true, true]);
    expect(await entriesIn("chunked")).toBe(70_001);
  });

  it.each([
    ["an entry without characters", { add: [""] }, "/add/0"],
    ["an entry of 513 characters", { remove: ["x".repeat(513)] }, "/remove/0"],
    ["NUL", { add: ["a\0"] }, "/add/0"],
    ["an entry to add and to remove", { add: ["a", "b"], remove: ["b"] }, "/add/1"],
    [
      "more than 10,000 entries together",
      { add: Array.from({ length: 6_000 }, String), remove: Array(4_001).fill("x") },
      "at most 10000",
    ],
  ])("is rejected with %s", async (_, body, message) => {
    await given.call("/api/v1/audiences", { method: "POST", body: { key: "w", name: "Wrong" } });
    const answer = await given.change("w", body);
    expect(answer).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_001" } } });
    expect(answer.body.error.message).toContain(message);
  });

  it("keeps the fingerprint of a removed entry that another entry has", async () => {
    await given.create({ key: "collision" });
    await given.upload("collision", "ada\n");
    const { list } = await publishedList("collision");
    await management.sql`
      insert into audience_members (list_id, fingerprint, member)
      select stored.list_id, stored.fingerprint, 'its double' from audience_members as stored
      join audiences as audience on audience.list_id = stored.list_id
      where audience.id = ${await given.idOf("collision")}`;
    const answer = await given.change("collision", { remove: ["ada"], add: ["grace"] });
    expect(answer.status).toBe(200);
    const { has } = await publishedList("collision");
    expect([has("ada"), has("grace")]).toEqual([true, true]);
    expect(bytesOfHex(list.key)).toHaveLength(16);
  });
});

describe("removing a list", () => {
  it("removes its entries, its chunks and their size", async () => {
    await given.create({ key: "removed" });
    await given.upload("removed", "ada\ngrace\n");
    const size = async () => {
      const [row] = await management.sql<[{ bytes: number }]>`
        select bytes from configuration_sizes where organization_id = ${project.organizationId}`;
      return row.bytes;
    };
    const before = await size();
    const id = await given.idOf("removed");
    const answer = await given.call(given.path("removed"), {
      method: "PATCH",
      body: { list: null },
    });
    expect(answer.body).toMatchObject({ version: 3, list: null });
    expect(before - (await size())).toBe(16);
    expect((await given.entries(id)).at(-1)).not.toHaveProperty("list");
    expect(await given.hasMember("removed", "ada")).toBe(false);
    const left = await management.sql`select from audience_chunks where audience_id = ${id}`;
    expect(left.count).toBe(0);
    await eventually(async () => (await unusedLists()) === 0);
  });
});
