import { afterAll, describe, expect, it } from "@jest/globals";
import { operatorToken as key, openManagement } from "../management-fixture.ts";
import { entriesOf, readLocationOf, tenancyOf } from "../tenancy-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const given = tenancyOf(management);

const pathOf = (organizationId: string) => `/api/v1/organizations/${organizationId}/projects`;

const create = (organizationId: string, body: unknown, headers: Record<string, string> = {}) =>
  management.call(pathOf(organizationId), { method: "POST", key, body, headers });

describe("renaming a project", () => {
  it("returns and publishes the new name, and records both names in the audit log", async () => {
    const { id } = await given.organization();
    const project = await given.project(id, { name: "Web" });
    await given.project(id, { name: "Mobile" });
    const path = `${pathOf(id)}/${project.id}`;
    const rename = (name: string) =>
      management.call(path, { method: "PATCH", key, body: { name } });
    expect((await rename("Mobile")).body.error.code).toBe("CONFLICT_001");
    expect((await rename("Site")).body).toEqual({ ...project, name: "Site" });
    expect((await rename("Site")).status).toBe(200);
    expect((await management.call(path, { key })).body.name).toBe("Site");
    expect(await entriesOf(management, `${id}.project.${project.id}`)).toMatchObject([
      { name: "Web", version: 1 },
      { name: "Site", version: 2 },
    ]);
    const audit = await management.call(`/api/v1/projects/${project.id}/changes`, { key });
    expect(audit.body.changes[0]).toMatchObject({
      action: "project_renamed",
      before: { name: "Web" },
      after: { name: "Site" },
    });
  });
});

describe("creating a project", () => {
  it("creates three environments by default", async () => {
    const { id } = await given.organization();
    const answer = await create(id, { name: "Web" });
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`${pathOf(id)}/${answer.body.id}`);
    expect((await readLocationOf(management, answer, key)).body).toEqual(answer.body);
    expect(answer.body).toMatchObject({ organization_id: id, name: "Web" });
    expect(answer.body.environments).toMatchObject([
      { name: "development", project_id: answer.body.id },
      { name: "staging", project_id: answer.body.id },
      { name: "production", project_id: answer.body.id },
    ]);
  });

  it("publishes the project, its environments and the organization with its new count", async () => {
    const { id } = await given.organization();
    const project = (await create(id, { name: "Web", environments: ["live"] })).body;
    const [live] = project.environments;
    expect(await entriesOf(management, `${id}.project.${project.id}`)).toMatchObject([
      { kind: "project", name: "Web", version: 1, committed_at: project.created_at },
    ]);
    expect(await entriesOf(management, `${id}.environment.${live.id}`)).toMatchObject([
      { kind: "environment", project_id: project.id, name: "live", version: 1 },
    ]);
    expect(await entriesOf(management, `${id}.organization`)).toMatchObject([
      { version: 1, project_count: 0 },
      { version: 2, project_count: 1, committed_at: project.created_at },
    ]);
  });

  it("adds audit entries for the project and each environment", async () => {
    const { id } = await given.organization();
    const project = (await create(id, { name: "Web", environments: ["a", "b"] })).body;
    const changes = await management.sql`
      select action, actor_id, state_before, state_after from changes
      where project_id = ${project.id} order by sequence`;
    const byOperator = {
      actor_id: "00000000-0000-0000-0000-000000000000",
      state_before: null,
    };
    expect([...changes]).toEqual([
      { ...byOperator, action: "project_created", state_after: { name: "Web" } },
      { ...byOperator, action: "environment_created", state_after: { name: "a" } },
      { ...byOperator, action: "environment_created", state_after: { name: "b" } },
    ]);
  });

  it("rejects a name that exists in the organization, but not one of another organization", async () => {
    const one = await given.organization();
    const other = await given.organization();
    expect((await create(one.id, { name: "Web" })).status).toBe(201);
    expect((await create(other.id, { name: "Web" })).status).toBe(201);
    const again = await create(one.id, { name: "Web" });
    expect(again.status).toBe(409);
    expect(again.body.error.code).toBe("CONFLICT_001");
    expect(await entriesOf(management, `${one.id}.organization`)).toHaveLength(2);
  });

  it.each([
    [{ name: "x", environments: ["a", "b", "a"] }, "/environments/2 must not repeat"],
    [{ name: "x", environments: [] }, "/environments must NOT have fewer than 1 items"],
    [{ name: "x", environments: [" "] }, "/environments/0 must be one line of text"],
    [{ name: "x", environments: "a" }, "/environments must be array"],
    [{ environments: ["a"] }, "/name is required"],
  ])("rejects %j", async (body, message) => {
    const { id } = await given.organization();
    const answer = await create(id, body);
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toContain(message);
  });

  it("returns 404 for an unknown organization", async () => {
    const unknownId = "01890000-0000-7000-8000-000000000000";
    expect((await create(unknownId, { name: "Web" })).status).toBe(404);
    expect((await management.call(pathOf(unknownId), { key })).status).toBe(404);
  });
});

describe("the plan's limit of projects", () => {
  it("is exact for twenty concurrent requests", async () => {
    const { id } = await given.organization({ plan: "pro" });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => create(id, { name: `Project ${index}` })),
    );
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(10);
    expect(answers.filter((answer) => answer.status === 429)).toHaveLength(10);
    const list = (await management.call(pathOf(id), { key })).body.projects;
    expect(list).toHaveLength(10);
    const entries = await entriesOf(management, `${id}.organization`);
    const counts = Array.from({ length: 11 }, (_, count) => count);
    expect(entries.map((entry) => entry.project_count)).toEqual(counts);
    expect(entries.map((entry) => entry.version)).toEqual(counts.map((count) => count + 1));
  });

  it("is named in the error response, which has no Retry-After", async () => {
    const { id } = await given.organization({ plan: "free" });
    for (const name of ["a", "b", "c"]) await create(id, { name });
    const rejected = await create(id, { name: "d" });
    expect(rejected.status).toBe(429);
    expect(rejected.body.error).toMatchObject({
      code: "RATE_001",
      message:
        'The organization\'s plan "free" allows 3 projects, and the organization has 3. The operator raises it with a larger plan: PATCH /api/v1/organizations/:organizationId.',
    });
    expect(rejected.headers.get("retry-after")).toBeNull();
    expect(rejected.headers.get("ratelimit-policy")).toBe('"projects";q=3');
    expect(rejected.headers.get("ratelimit")).toBe('"projects";r=0');
  });

  it("follows the plan, and does not affect existing projects", async () => {
    const { id } = await given.organization({ plan: "starter" });
    for (const name of ["a", "b", "c", "d"]) expect((await create(id, { name })).status).toBe(201);
    const path = `/api/v1/organizations/${id}`;
    await management.call(path, { method: "PATCH", key, body: { plan: "free" } });
    expect((await create(id, { name: "e" })).status).toBe(429);
    expect((await management.call(pathOf(id), { key })).body.projects).toHaveLength(4);
    await management.call(path, { method: "PATCH", key, body: { plan: "growth" } });
    expect((await create(id, { name: "e" })).status).toBe(201);
  });
});

describe("listing projects", () => {
  it("returns the organization's projects and environments in the order of creation", async () => {
    const { id } = await given.organization();
    const other = await given.organization();
    const first = await given.project(id, { environments: ["z", "a"] });
    const second = await given.project(id);
    await given.project(other.id);
    const list = await management.call(pathOf(id), { key });
    expect(list.body).toEqual({ projects: [first, second] });
  });
});

describe("Idempotency-Key", () => {
  it("creates one project, and rejects another body", async () => {
    const { id } = await given.organization();
    const headers = { "idempotency-key": "project" };
    const answers = await Promise.all([1, 2, 3].map(() => create(id, { name: "Web" }, headers)));
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
    expect((await create(id, { name: "App" }, headers)).status).toBe(409);
  });
});
