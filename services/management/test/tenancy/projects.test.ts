import { defaultPlans } from "@halyard/contracts";
import { afterAll, describe, expect, it } from "@jest/globals";
import { operatorToken as key, openManagement } from "../management-fixture.ts";
import { entriesOf, readLocationOf, tenancyOf } from "../tenancy-fixture.ts";

const planWithoutLimits = { requests_per_month: null, sse_connections: null, projects: null };
const management = await openManagement({
  plans: {
    ...defaultPlans,
    small: { ...planWithoutLimits, configuration_bytes: 1_000 },
    smaller: { ...planWithoutLimits, configuration_bytes: 100 },
    "without the limit": planWithoutLimits,
  },
});
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
      { ...byOperator, action: "environment_created", state_after: { name: "a", caution: false } },
      { ...byOperator, action: "environment_created", state_after: { name: "b", caution: false } },
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

describe("the plan's limit of the size of rules", () => {
  /** Returns rules of this size as JSON, without the brackets. Each rule but the last one has 100 bytes. */
  function rulesOf(bytes: number) {
    const rule = (size: number) => ({ name: "x".repeat(size - emptyRuleBytes), conditions: [] });
    const rules = [];
    let rest = bytes;
    for (; rest > 200; rest -= 101) rules.push(rule(100));
    return [...rules, rule(rest)];
  }
  const emptyRuleBytes = JSON.stringify({ name: "", conditions: [] }).length;

  async function givenFlags(plan: string) {
    const scope = await given.scope(["production", "staging"], { plan });
    const write = (method: string, path: string, body?: unknown) =>
      management.call(path, { method, key: scope.serverKey, body });
    let counter = 0;
    const organization = `/api/v1/organizations/${scope.organizationId}`;
    return {
      ...scope,
      create: (bytes: number) =>
        write("POST", "/api/v1/flags", {
          key: `flag-${++counter}`,
          name: "f",
          targeting_rules: bytes === 0 ? [] : rulesOf(bytes),
        }),
      change: (flag: { id: string }, body: Record<string, unknown>) =>
        write("PATCH", `/api/v1/flags/${flag.id}`, body),
      write,
      changePlan: (next: string) =>
        management.call(organization, { method: "PATCH", key, body: { plan: next } }),
      size: async () => (await management.call(organization, { key })).body.configuration_bytes,
    };
  }

  it("rejects a flag beyond it, with what is allowed and used, and without Retry-After", async () => {
    const { create, size } = await givenFlags("small");
    expect((await create(200)).status).toBe(201);
    expect((await create(300)).status).toBe(201);
    expect((await create(400)).status).toBe(201);
    const rejected = await create(101);
    expect(rejected.status).toBe(429);
    expect(rejected.body.error).toMatchObject({
      code: "RATE_001",
      message:
        'The organization\'s plan "small" allows 1000 bytes of rules and values. The organization has 900, and the change adds 101. The operator raises it with a larger plan: PATCH /api/v1/organizations/:organizationId.',
    });
    expect(rejected.headers.get("retry-after")).toBeNull();
    expect(rejected.headers.get("ratelimit-policy")).toBe('"configuration_bytes";q=1000');
    expect(rejected.headers.get("ratelimit")).toBe('"configuration_bytes";r=100');
    expect((await create(100)).status).toBe(201);
    expect(await size()).toEqual({ used: 1_000, limit: 1_000 });
  });

  it("rejects an environment whose flags would exceed it by their values", async () => {
    const { project, write, size } = await givenFlags("small");
    const variations = [{ key: "a", value: "x".repeat(398) }];
    const body = { key: "typed", name: "Typed", value_type: "string", variations };
    expect((await write("POST", "/api/v1/flags", body)).status).toBe(201);
    expect(await size()).toEqual({ used: 834, limit: 1_000 });
    const environments = `/api/v1/projects/${project.id}/environments`;
    const added = await management.call(environments, {
      ...{ method: "POST", key, body: { name: "third" } },
    });
    expect([added.status, added.body.error.code]).toEqual([429, "RATE_001"]);
    expect(added.body.error.message).toContain("has 834, and the change adds 417.");
  });

  it("covers all environments of the organization", async () => {
    const { create, write, second, size } = await givenFlags("small");
    const { body: flag } = await create(400);
    const path = `/api/v1/flags/${flag.id}/environments/${second.id}`;
    expect((await write("PATCH", path, { targeting_rules: rulesOf(400) })).status).toBe(200);
    expect((await write("PATCH", path, { targeting_rules: rulesOf(350) })).status).toBe(200);
    expect((await size()).used).toBe(750);
    expect((await create(300)).status).toBe(429);
  });

  it("is exact for concurrent writes", async () => {
    const { create, change, size } = await givenFlags("small");
    const flags = await Promise.all(Array.from({ length: 8 }, () => create(0)));
    const answers = await Promise.all([
      ...flags.map(({ body }) => change(body, { targeting_rules: rulesOf(150) })),
      ...flags.map(() => create(150)),
    ]);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(10);
    expect((await size()).used).toBe(900);
  });

  it("accepts smaller rules and everything that leaves rules alone after a move to a smaller plan", async () => {
    const { create, change, changePlan, size } = await givenFlags("small");
    const { body: flag } = await create(800);
    await change(flag, { enabled: true });
    await changePlan("smaller");
    for (const body of [
      { enabled: false },
      { name: "Renamed", rollout_percentage: 5 },
      { targeting_rules: rulesOf(700) },
    ])
      expect((await change(flag, body)).status).toBe(200);
    expect((await create(0)).status).toBe(201);
    expect((await change(flag, { targeting_rules: rulesOf(701) })).status).toBe(429);
    expect(await size()).toEqual({ used: 700, limit: 100 });
  });

  it("rejects a rollback that grows, and accepts one that does not", async () => {
    const { create, change, changePlan, write, first } = await givenFlags("small");
    const { body: flag } = await create(800);
    await change(flag, { targeting_rules: rulesOf(300), enabled: true });
    await changePlan("smaller");
    const state = `/api/v1/flags/${flag.id}/environments/${first.id}`;
    expect((await write("POST", `${state}/rollback`)).status).toBe(429);
    await change(flag, { targeting_rules: rulesOf(200) });
    await change(flag, { enabled: false });
    expect((await write("POST", `${state}/rollback`)).status).toBe(200);
  });

  it("does not exist in a plan that is configured without it", async () => {
    const { create, size } = await givenFlags("without the limit");
    const { body: flag } = await create(380);
    expect(flag.targeting_rules).toHaveLength(3);
    expect(await size()).toEqual({ used: 380, limit: null });
  });

  it("measures numbers without exponents, as usage-metering does", async () => {
    const value = [1e308, -2.5e-7, 0.1];
    const rules = [{ name: "größer", conditions: [{ attribute: "a", operator: "in", value }] }];
    const [measured] = await management.sql<{ bytes: number }[]>`
      select configuration_bytes_of(${JSON.stringify({ targeting_rules: rules })}::text::jsonb) as bytes`;
    expect(measured?.bytes).toBe(404);
  });

  it("measures what a typed flag serves and its values, in each environment, as usage-metering does", async () => {
    const { write, second, size } = await givenFlags("small");
    const split = [
      { variation: "small", weight: 33.3, ranges: [[0, 3330]] },
      { variation: "large", weight: 66.7, ranges: [[3330, 10_000]] },
    ];
    const { body: flag } = await write("POST", "/api/v1/flags", {
      ...{ key: "sizes", name: "Sizes", value_type: "object", serve: { split } },
      variations: [
        { key: "small", name: "Small", value: { größe: 1e-7 } },
        { key: "large", value: { größe: "groß" } },
      ],
      targeting_rules: [{ id: "a", conditions: [], serve: { variation: "large" } }],
    });
    // Usage-metering measures the entries of this flag (`reports.test.ts`).
    expect((await size()).used).toBe(218 + 56);
    const grown = [...flag.variations, { key: "empty", value: {} }];
    expect((await write("PATCH", `/api/v1/flags/${flag.id}`, { variations: grown })).status).toBe(
      200,
    );
    expect((await size()).used).toBe(220 + 58);
    const state = `/api/v1/flags/${flag.id}/environments/${second.id}`;
    await write("PATCH", state, { serve: { variation: "empty" } });
    expect((await size()).used).toBe(220 + 58);
    await write("DELETE", `/api/v1/flags/${flag.id}`);
    expect((await size()).used).toBe(0);
  });

  it("measures JSON without spaces, in bytes of UTF-8", async () => {
    const { write, size } = await givenFlags("small");
    const rules = [
      {
        name: 'a "quote", a: b, \\ and \t',
        conditions: [
          { attribute: "größe", operator: "in", value: ["😀, x", 1.5, true, "\u0001 / é"] },
          { attribute: "n", operator: "gt", value: 12_000_000_000_000_000_000 },
        ],
        value: false,
        rollout_percentage: 0,
      },
      { conditions: [] },
    ];
    await write("POST", "/api/v1/flags", { key: "f", name: "f", targeting_rules: rules });
    expect((await size()).used).toBe(Buffer.byteLength(JSON.stringify(rules)) - 2);
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
