import { defaultPlans } from "@halyard/contracts";
import { afterAll, describe, expect, it } from "@jest/globals";
import { operatorToken as key, openManagement } from "../management-fixture.ts";
import { entriesOf, readLocationOf, tenancyOf } from "../tenancy-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const given = tenancyOf(management);

const organizations = "/api/v1/organizations";
const unknownId = "01890000-0000-7000-8000-000000000000";
const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

describe("creating an organization", () => {
  it("returns 201 with the limits of its plan, and publishes it", async () => {
    const answer = await management.call(organizations, {
      method: "POST",
      key,
      body: { name: "Acme", plan: "pro" },
    });
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`${organizations}/${answer.body.id}`);
    expect((await readLocationOf(management, answer, key)).body).toEqual(answer.body);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: "Acme",
      plan: "pro",
      limits: defaultPlans.pro,
      configuration_bytes: { used: 0, limit: defaultPlans.pro?.configuration_bytes },
      created_at: instant,
      updated_at: answer.body.created_at,
    });
    expect(await entriesOf(management, `${answer.body.id}.organization`)).toEqual([
      {
        kind: "organization",
        organization_id: answer.body.id,
        name: "Acme",
        plan: "pro",
        project_count: 0,
        version: 1,
        committed_at: answer.body.created_at,
      },
    ]);
  });

  it.each(["platinum", "__proto__", "constructor"])(
    "rejects the plan %s and names the configured plans",
    async (plan) => {
      const body = { name: "Acme", plan };
      const answer = await management.call(organizations, { method: "POST", key, body });
      expect(answer.status).toBe(400);
      expect(answer.body.error).toMatchObject({
        code: "VALIDATION_001",
        message: '/plan must be one of "free", "starter", "pro", "growth", "unlimited"',
      });
    },
  );

  it("happens once for one Idempotency-Key", async () => {
    const request = {
      method: "POST",
      key,
      body: { name: "Once", plan: "free" },
      headers: { "idempotency-key": "organization" },
    };
    const answers = await Promise.all([1, 2, 3].map(() => management.call(organizations, request)));
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
  });
});

describe("reading organizations", () => {
  it("returns one, and all of them in the order of creation", async () => {
    const first = await given.organization();
    const second = await given.organization();
    expect((await management.call(`${organizations}/${first.id}`, { key })).body).toEqual(first);
    const upperCase = `${organizations}/${first.id.toUpperCase()}`;
    expect((await management.call(upperCase, { key })).body).toEqual(first);
    const list = (await management.call(organizations, { key })).body.organizations;
    expect(list.slice(-2)).toEqual([first, second]);
  });

  it("returns 404 for an unknown one", async () => {
    const answer = await management.call(`${organizations}/${unknownId}`, { key });
    expect(answer.status).toBe(404);
    expect(answer.body.error.code).toBe("NOT_FOUND_001");
  });
});

describe("the list of plans", () => {
  it("has the limits of each, the smallest plan first, for the operator and any key", async () => {
    const { userId, serverKey, first } = await given.scope();
    const client = await given.key(first, { user_id: userId, kind: "client" });
    for (const caller of [key, serverKey, client.key]) {
      const { status, body } = await management.call("/api/v1/plans", { key: caller });
      expect(status).toBe(200);
      expect(body).toEqual({
        plans: ["free", "starter", "pro", "growth", "unlimited"].map((name) => ({
          name,
          limits: defaultPlans[name],
        })),
      });
    }
  });

  it("is not returned without a key", async () => {
    expect((await management.call("/api/v1/plans")).body.error.code).toBe("AUTH_001");
  });
});

describe("changing an organization", () => {
  it.each(["PATCH", "PUT"])(
    "moves it to another plan by %s, with a new version",
    async (method) => {
      const { id, name, created_at } = await given.organization({ plan: "free" });
      const body = { plan: "starter" };
      const answer = await management.call(`${organizations}/${id}`, { method, key, body });
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({
        id,
        name,
        plan: "starter",
        limits: defaultPlans.starter,
      });
      expect(answer.body.created_at).toBe(created_at);
      expect(await entriesOf(management, `${id}.organization`)).toMatchObject([
        { version: 1, plan: "free" },
        { version: 2, plan: "starter", project_count: 0 },
      ]);
    },
  );

  it("keeps the number of its projects in the entry", async () => {
    const { id } = await given.organization();
    await given.project(id);
    await management.call(`${organizations}/${id}`, {
      method: "PATCH",
      key,
      body: { name: "New" },
    });
    expect(await entriesOf(management, `${id}.organization`)).toMatchObject([
      { version: 1, project_count: 0 },
      { version: 2, project_count: 1 },
      { version: 3, project_count: 1, name: "New" },
    ]);
  });

  it("records nothing if no field differs", async () => {
    const organization = await given.organization();
    const { name, plan } = organization;
    for (const body of [{}, { name }, { name, plan }]) {
      const path = `${organizations}/${organization.id}`;
      const answer = await management.call(path, { method: "PATCH", key, body });
      expect(answer).toMatchObject({ status: 200, body: organization });
    }
    expect(await entriesOf(management, `${organization.id}.organization`)).toHaveLength(1);
  });

  it("rejects an unknown plan, an unknown field and an unknown organization", async () => {
    const { id } = await given.organization();
    const patch = (target: string, body: unknown) =>
      management.call(`${organizations}/${target}`, { method: "PATCH", key, body });
    expect((await patch(id, { plan: "gold" })).body.error.message).toContain(
      "/plan must be one of",
    );
    expect((await patch(id, { plna: "pro" })).body.error.message).toContain("/plna is not a known");
    expect((await patch(unknownId, { name: "x" })).status).toBe(404);
  });
});

describe("users", () => {
  it("are created and listed", async () => {
    const { id } = await given.organization();
    const path = `${organizations}/${id}/users`;
    const body = { email: "ada@example.com", name: "Ada" };
    const first = await management.call(path, { method: "POST", key, body });
    expect(first.status).toBe(201);
    expect(first.headers.get("location")).toBe(`${path}/${first.body.id}`);
    expect(first.body).toEqual({
      ...body,
      id: expect.any(String),
      organization_id: id,
      kind: "person",
      signs_in: false,
      created_at: instant,
    });
    const second = await management.call(path, {
      method: "POST",
      key,
      body: { email: "grace@example.com" },
    });
    expect(second.body.name).toBeNull();
    for (const each of [first, second])
      expect(await readLocationOf(management, each, key)).toMatchObject({
        status: 200,
        body: each.body,
      });
    const list = await management.call(path, { key });
    expect(list.body).toEqual({ users: [first.body, second.body] });
  });

  it("have a unique e-mail address in the organization, ignoring case", async () => {
    const { id } = await given.organization();
    const path = `${organizations}/${id}/users`;
    const create = (email: string) =>
      management.call(path, { method: "POST", key, body: { email } });
    const ada = (await create("ada@example.com")).body;
    const answer = await create("Ada@Example.com");
    expect(answer.status).toBe(409);
    expect(answer.body.error.code).toBe("CONFLICT_001");
    const grace = (await create("grace@example.com")).body;
    const change = (body: unknown) =>
      management.call(`${path}/${grace.id}`, { method: "PATCH", key, body });
    expect((await change({ email: "ADA@example.com" })).status).toBe(409);
    const changed = await change({ email: "Grace@Example.com", name: "Grace" });
    expect(changed.body).toEqual({ ...grace, email: "Grace@Example.com", name: "Grace" });
    const both = await Promise.all([create("late@example.com"), create("LATE@example.com")]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([201, 409]);
    expect((await management.call(`${path}/${ada.id}`, { key })).body).toEqual(ada);
  });

  it("keep an e-mail address that they share since an earlier release", async () => {
    const { id } = await given.organization();
    const path = `${organizations}/${id}/users`;
    const [first, second] = [await given.user(id), await given.user(id)];
    await management.sql`update users set email = ${first.email} where id = ${second.id}`;
    const renamed = await management.call(`${path}/${second.id}`, {
      method: "PATCH",
      key,
      body: { name: "Second" },
    });
    expect(renamed.body).toMatchObject({ name: "Second", email: first.email });
  });

  it.each([
    [{ email: "nobody" }, "/email must be an e-mail address"],
    [{ email: "a@b", name: "" }, "/name"],
    [{}, "/email is required"],
  ])("are rejected as %j", async (body, message) => {
    const { id } = await given.organization();
    const path = `${organizations}/${id}/users`;
    const answer = await management.call(path, { method: "POST", key, body });
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toContain(message);
  });

  it("are not found in an unknown organization", async () => {
    const path = `${organizations}/${unknownId}/users`;
    const body = { email: "ada@example.com" };
    expect((await management.call(path, { key })).status).toBe(404);
    expect((await management.call(path, { method: "POST", key, body })).status).toBe(404);
  });
});

describe("the operator's routes", () => {
  it.each([
    organizations,
    `${organizations}/${unknownId}`,
    `${organizations}/${unknownId}/users`,
    `${organizations}/${unknownId}/users/${unknownId}`,
    `${organizations}/${unknownId}/projects/${unknownId}`,
  ])("are forbidden for API keys: %s", async (path) => {
    const { serverKey } = await given.scope();
    const answer = await management.call(path, { key: serverKey });
    expect(answer.status).toBe(403);
    expect(answer.body.error.code).toBe("AUTH_002");
  });
});
