import { connectAsSuperuser, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { applyRetention } from "../../src/upkeep/retention.ts";
import { flagsOf } from "../flag-fixture.ts";
import { type Management, openManagement, seedProject } from "../management-fixture.ts";
import { audiencesOf } from "./audience-fixture.ts";

let management: Management;
let project: Awaited<ReturnType<typeof seedProject>>;
let given: ReturnType<typeof audiencesOf>;
let flags: ReturnType<typeof flagsOf>;
beforeAll(async () => {
  management = await openManagement();
  project = await seedProject(management);
  given = audiencesOf(management, project);
  flags = flagsOf(management, project);
});
afterAll(() => management.close());

const onBeta = [{ attribute: "plan", operator: "equals", value: "beta" }];
const ofCompany = [{ attribute: "email", operator: "ends_with", value: "@example.com" }];

/** Creates a flag whose rule uses an audience, in the environment of the key. */
const createUser = (audience: string) =>
  flags.createFlag({ targeting_rules: [{ conditions: [{ audience }] }] });

const ownKeyOf = async (): Promise<string> => {
  const path = `/api/v1/projects/${project.projectId}/environments/${project.environmentId}/keys`;
  const body = { kind: "server", name: "CI", environment_only: true };
  const { body: issued } = await given.call(path, { method: "POST", body });
  await eventually(() => management.directory.find(issued.id, Date.now()) !== undefined);
  return issued.key;
};

describe("creating an audience", () => {
  it("answers with the audience and its address", async () => {
    const answer = await given.call("/api/v1/audiences", {
      method: "POST",
      body: { key: "new", name: "New", match: [onBeta, ofCompany] },
    });
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe("/api/v1/audiences/new");
    expect(answer.headers.get("etag")).toBe('"1"');
    expect(answer.body).toEqual({
      key: "new",
      name: "New",
      description: "",
      match: [onBeta, ofCompany],
      list: null,
      version: 1,
      created_at: expect.any(String),
      updated_at: expect.any(String),
      used_by: [],
    });
  });

  it("publishes an entry and an event", async () => {
    await given.create({ key: "published", match: [[{ ...onBeta[0], match_case: true }]] });
    const [entry] = await given.entries(await given.idOf("published"));
    expect(entry).toMatchObject({
      kind: "audience",
      key: "published",
      match: [[{ ...onBeta[0], match_case: true }]],
      needs: ["match-case"],
      version: 1,
    });
    expect(await given.events("published")).toMatchObject([
      { event: "audience.updated", change: "created", version: 1, flags: [], flags_total: 0 },
    ]);
  });

  it.each([
    ["an empty alternative", { match: [[]] }, "/match/0"],
    [
      "an expression that is not RE2",
      { match: [onBeta, [{ attribute: "a", operator: "matches_regex", value: "(?<=a)" }]] },
      "/match/1/0/value",
    ],
    ["a nested audience", { match: [[{ audience: "new" }]] }, "/match/0/0"],
    ["a condition of another flag", { match: [[{ flag: "a", is: "on" }]] }, "/match/0/0"],
    ["a list", { list: { attribute: "id" } }, "/list"],
  ])("rejects %s", async (_, wrong, pointer) => {
    const body = { key: "wrong", name: "Wrong", ...wrong };
    const answer = await given.call("/api/v1/audiences", { method: "POST", body });
    expect(answer).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_001" } } });
    expect(answer.body.error.message).toContain(pointer);
  });

  it("rejects conditions of more than 480 KiB", async () => {
    const value = "x".repeat(9_990);
    const match = [Array.from({ length: 50 }, () => ({ ...onBeta[0], value }))];
    const body = { key: "large", name: "Large", match };
    const answer = await given.call("/api/v1/audiences", { method: "POST", body });
    expect(answer.body.error.message).toContain("/match must be at most 491520 bytes");
  });

  it("rejects a key that is taken, and names the other audience", async () => {
    await given.create({ key: "taken" });
    const body = { key: "taken", name: "Again" };
    const answer = await given.call("/api/v1/audiences", { method: "POST", body });
    expect(answer).toMatchObject({ status: 409, body: { error: { code: "CONFLICT_001" } } });
    expect(answer.headers.get("location")).toBe("/api/v1/audiences/taken");
  });

  it("happens once for an idempotency key", async () => {
    const request = {
      method: "POST",
      body: { key: "once", name: "Once" },
      headers: { "idempotency-key": "create-once" },
    };
    const first = await given.call("/api/v1/audiences", request);
    const second = await given.call("/api/v1/audiences", request);
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(second.body).toEqual(first.body);
  });
});

describe("reading audiences", () => {
  it("answers 304 until the audience or its uses change", async () => {
    await given.create({ key: "cached" });
    const first = await given.call(given.path("cached"));
    const headers = { "if-none-match": first.headers.get("etag") ?? "" };
    expect(await given.call(given.path("cached"), { headers })).toMatchObject({ status: 304 });
    const flag = await createUser("cached");
    const changed = await given.call(given.path("cached"), { headers });
    expect(changed.body.used_by).toEqual([
      { flag_id: flag.id, flag_key: flag.key, environment_id: project.environmentId },
    ]);
  });

  it("lists all audiences in the order of their keys", async () => {
    await given.create({ key: "zz-last" });
    await given.create({ key: "00-first" });
    const { body } = await given.call("/api/v1/audiences");
    const keys = body.audiences.map((audience: { key: string }) => audience.key);
    expect(keys).toEqual(keys.toSorted());
    expect([keys.at(0), keys.at(-1)]).toEqual(["00-first", "zz-last"]);
  });

  it("does not find an audience of another project", async () => {
    await given.create({ key: "private" });
    const other = await seedProject(management);
    const answer = await given.call(given.path("private"), { key: other.serverKey });
    expect(answer.status).toBe(404);
  });

  it("shows a key with environment_only the uses in its environment", async () => {
    await given.create({ key: "both" });
    const flag = await createUser("both");
    const path = `/api/v1/flags/${flag.id}/environments/${project.otherEnvironmentId}`;
    const body = { targeting_rules: [{ conditions: [{ audience: "both" }] }] };
    await given.call(path, { method: "PATCH", body });
    expect((await given.read("both")).used_by).toHaveLength(2);
    const answer = await given.call(given.path("both"), { key: await ownKeyOf() });
    expect(answer.body.used_by).toMatchObject([{ environment_id: project.environmentId }]);
  });
});

describe("changing an audience", () => {
  it("publishes its entry with the next version, and an event that names the flags", async () => {
    await given.create({ key: "changed", match: [onBeta] });
    const flag = await createUser("changed");
    const answer = await given.call(given.path("changed"), {
      method: "PATCH",
      body: { match: [ofCompany] },
    });
    expect(answer).toMatchObject({ status: 200, body: { version: 2, match: [ofCompany] } });
    const entries = await given.entries(await given.idOf("changed"));
    expect(entries.at(-1)).toMatchObject({ version: 2, match: [ofCompany] });
    expect((await given.events("changed")).at(-1)).toMatchObject({
      change: "updated",
      version: 2,
      flags: [flag.key],
      flags_total: 1,
    });
  });

  it("has no effect with the current values", async () => {
    await given.create({ key: "same", match: [onBeta] });
    const answer = await given.call(given.path("same"), {
      method: "PATCH",
      body: { name: "An audience", match: [onBeta] },
    });
    expect(answer).toMatchObject({ status: 200, body: { version: 1 } });
    expect(await given.events("same")).toHaveLength(1);
  });

  it("honors If-Match", async () => {
    await given.create({ key: "matched" });
    const rename = (name: string, tag: string) =>
      given.call(given.path("matched"), {
        method: "PATCH",
        body: { name },
        headers: { "if-match": tag },
      });
    const { headers } = await given.call(given.path("matched"));
    expect(await rename("Two", headers.get("etag") ?? "")).toMatchObject({ status: 200 });
    expect(await rename("Three", '"1"')).toMatchObject({
      status: 412,
      body: { error: { code: "CONFLICT_003" } },
    });
  });

  it("is recorded in the audit log and in the history", async () => {
    await given.create({ key: "recorded", match: [onBeta] });
    const body = { name: "Renamed", match: [ofCompany] };
    await given.call(given.path("recorded"), { method: "PATCH", body });
    const audit = await given.call(
      `/api/v1/projects/${project.projectId}/changes?action=audience_changed&limit=1`,
    );
    expect(audit.body.changes).toMatchObject([
      {
        audience_key: "recorded",
        environment_id: null,
        before: { name: "An audience", match: [onBeta] },
        after: { name: "Renamed", match: [ofCompany] },
      },
    ]);
    const first = await given.call(given.path("recorded", "/history?limit=1"));
    expect(first.body).toMatchObject({
      history: [{ version: 2, change: "updated", name: "Renamed", changed_by: project.userId }],
      next_before: 2,
    });
    const second = await given.call(given.path("recorded", "/history?before=2"));
    expect(second.body).toMatchObject({
      history: [{ version: 1, change: "created", match: [onBeta], list: null }],
      next_before: null,
    });
  });

  it("keeps the newest entry of its history, however old", async () => {
    await given.create({ key: "old" });
    await given.call(given.path("old"), { method: "PATCH", body: { name: "Newer" } });
    const id = await given.idOf("old");
    const sql = connectAsSuperuser(management.adminUrl, "management");
    await sql`
      update audience_history set changed_at = now() - interval '90 days'
      where audience_id = ${id}`;
    await sql.end();
    const { writer, clock } = management;
    const options = {
      sql: management.sql,
      writer,
      periods: { auditDays: 60, endedKeyDays: undefined },
    };
    await applyRetention({ ...options, now: clock.now }, () => true);
    const { body } = await given.call(given.path("old", "/history"));
    expect(body.history).toMatchObject([{ version: 2 }]);
  });

  it.each([
    ["POST", "/api/v1/audiences", { key: "forbidden", name: "Forbidden" }],
    ["PATCH", "/api/v1/audiences/guarded", { name: "Forbidden" }],
    ["DELETE", "/api/v1/audiences/guarded", undefined],
    ["PATCH", "/api/v1/audiences/guarded/list", { add: ["a"] }],
  ])("is forbidden to a key with environment_only: %s %s", async (method, path, body) => {
    await given.call("/api/v1/audiences", {
      method: "POST",
      body: { key: "guarded", name: "Guarded" },
    });
    const answer = await given.call(path, { method, key: await ownKeyOf(), body });
    expect(answer).toMatchObject({ status: 403, body: { error: { code: "AUTH_002" } } });
  });
});

describe("previewing a change", () => {
  it("lists the states that use the audience", async () => {
    await given.create({ key: "previewed" });
    const flag = await createUser("previewed");
    const answer = await given.call(given.path("previewed", "/preview"), {
      method: "POST",
      body: { match: [onBeta] },
    });
    expect(answer.body.flags).toEqual([
      {
        flag_id: flag.id,
        flag_key: flag.key,
        environment_id: project.environmentId,
        environment_name: "production",
        enabled: false,
      },
    ]);
    expect((await given.read("previewed")).match).toEqual([]);
  });
});

describe("deleting an audience", () => {
  it("is rejected while rules use it, and names the flags and environments", async () => {
    await given.create({ key: "used" });
    const flag = await createUser("used");
    const answer = await given.call(given.path("used"), { method: "DELETE" });
    expect(answer).toMatchObject({ status: 409, body: { error: { code: "CONFLICT_001" } } });
    expect(answer.body.error.message).toContain(`${flag.key} in production`);
  });

  it("publishes a tombstone and an event, and frees the key", async () => {
    await given.create({ key: "deleted" });
    const id = await given.idOf("deleted");
    expect(await given.call(given.path("deleted"), { method: "DELETE" })).toMatchObject({
      status: 204,
    });
    expect((await given.entries(id)).at(-1)).toMatchObject({ deleted: true, version: 2 });
    expect((await given.events("deleted")).at(-1)).toMatchObject({ change: "deleted" });
    expect(await given.call(given.path("deleted"))).toMatchObject({ status: 404 });
    expect(await given.create({ key: "deleted" })).toMatchObject({ version: 1 });
  });
});
