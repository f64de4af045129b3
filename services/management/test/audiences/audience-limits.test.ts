import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";
import { audiencesOf } from "./audience-fixture.ts";

/** Tests the limits of audiences, and changes that compete. */
const planWithoutLimits = { requests_per_month: null, sse_connections: null, projects: null };
const management = await openManagement({
  plans: {
    pro: { ...planWithoutLimits, configuration_bytes: null },
    small: { ...planWithoutLimits, configuration_bytes: 100 },
  },
});
afterAll(() => management.close());

const callWith = (key: string) => (method: string, path: string, body?: unknown) =>
  management.call(path, { method, key, ...(body === undefined ? {} : { body }) });

describe("the configuration bytes of the plan", () => {
  it("limit conditions and entries, which count once and not for each environment", async () => {
    const scope = await tenancyOf(management).scope(["production", "staging"], { plan: "small" });
    const call = callWith(scope.serverKey);
    const used = async () => {
      const path = `/api/v1/organizations/${scope.organizationId}`;
      return (await management.call(path, { key: operatorToken })).body.configuration_bytes.used;
    };
    const match = [[{ attribute: "plan", operator: "equals", value: "x" }]];
    const bytes = JSON.stringify(match).length - 2;
    await call("POST", "/api/v1/audiences", { key: "beta", name: "Beta", match });
    expect(await used()).toBe(bytes);
    const list = "/api/v1/audiences/beta/list";
    const add = ["a", "b", "c", "d"];
    expect((await call("PATCH", list, { add })).status).toBe(200);
    expect(await used()).toBe(bytes + 32);

    const rejected = await call("PATCH", list, { add: ["e", "f", "g"] });
    expect([rejected.status, rejected.body.error.code]).toEqual([429, "RATE_001"]);
    expect(await used()).toBe(bytes + 32);
    expect((await call("PATCH", list, { remove: ["a"] })).status).toBe(200);
    expect(await used()).toBe(bytes + 24);
    expect((await call("DELETE", "/api/v1/audiences/beta")).status).toBe(204);
    expect(await used()).toBe(0);
  });
});

describe("given uploads beyond a limit", () => {
  const entries = (count: number) => Array.from({ length: count }, (_, at) => `u${at}\n`).join("");
  const storedEntries = async () =>
    (await management.sql`select from audience_members limit 100000`).count;
  const removed = () =>
    eventually(async () => (await storedEntries()) === 0, { because: "no entries are left" });

  it("removes their entries", async () => {
    const scope = await tenancyOf(management).scope(["production"], { plan: "small" });
    const given = audiencesOf(management, { ...scope, projectId: scope.project.id });
    await given.create({ key: "beta" });
    expect((await given.upload("beta", entries(13))).status).toBe(429);
    await removed();
  });

  it("rejects them before the end of the body", async () => {
    const scope = await tenancyOf(management).scope(["production"], { plan: "small" });
    const given = audiencesOf(management, { ...scope, projectId: scope.project.id });
    await given.create({ key: "beta" });
    const { request, answer } = given.openUpload("beta");
    request.on("error", () => undefined);
    request.write(entries(50_000));
    expect((await answer).status).toBe(429);
    request.destroy();
    await removed();
  });
});

describe("a project", () => {
  it("has at most 1,000 audiences", async () => {
    const project = await seedProject(management);
    await management.sql`
      insert into audiences (id, organization_id, project_id, key, name, description, match, version,
        created_at, updated_at)
      select gen_random_uuid(), ${project.organizationId}::uuid, ${project.projectId}::uuid,
        'audience-' || number, 'An audience', '', '[]', 1, now(), now()
      from generate_series(1, 999) as number`;
    const call = callWith(project.serverKey);
    const create = (key: string) => call("POST", "/api/v1/audiences", { key, name: "One more" });
    const [one, other] = await Promise.all([create("one"), create("other")]);
    expect([one.status, other.status].sort()).toEqual([201, 409]);
    const { body } = await call("GET", "/api/v1/audiences");
    expect(body.audiences).toHaveLength(1_000);
  });
});

describe("given an audience that is deleted while a rule begins to use it", () => {
  it("keeps one of both changes", async () => {
    const project = await seedProject(management);
    const call = callWith(project.serverKey);
    const { body: flag } = await call("POST", "/api/v1/flags", { key: "new", name: "New" });
    const path = `/api/v1/flags/${flag.id}`;
    for (let round = 0; round < 10; round += 1) {
      await call("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
      const targeting_rules = [{ conditions: [{ audience: "beta" }] }];
      const [used, deleted] = await Promise.all([
        call("PATCH", path, { targeting_rules }),
        call("DELETE", "/api/v1/audiences/beta"),
      ]);
      expect([
        [200, 409],
        [400, 204],
      ]).toContainEqual([used.status, deleted.status]);
      await call("PATCH", path, { targeting_rules: [] });
    }
  });
});

describe("given concurrent changes of the entries of a list", () => {
  it("keeps all of them", async () => {
    const project = await seedProject(management);
    const call = callWith(project.serverKey);
    await call("POST", "/api/v1/audiences", { key: "beta", name: "Beta" });
    const path = "/api/v1/audiences/beta/list";
    const members = Array.from({ length: 20 }, (_, index) => `user-${index}`);
    const answers = await Promise.all(
      members.map((member) => call("PATCH", path, { add: [member] })),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    const { body } = await call("GET", "/api/v1/audiences/beta");
    expect(body).toMatchObject({ version: 21, list: { count: 20 } });
    const [row] = await management.sql<[{ bytes: number }]>`
      select sum(octet_length(bytes))::integer as bytes from audience_chunks
      join audiences as audience on audience.id = audience_chunks.audience_id
      where audience.project_id = ${project.projectId}`;
    expect(row.bytes).toBe(20 * 8);
  });
});
