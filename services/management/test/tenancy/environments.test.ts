import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { entriesOf, readLocationOf, tenancyOf } from "../tenancy-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const given = tenancyOf(management);

const pathOf = (projectId: string) => `/api/v1/projects/${projectId}/environments`;

const create = (
  projectId: string,
  name: string,
  options: { key?: string; headers?: Record<string, string> } = {},
) =>
  management.call(pathOf(projectId), {
    method: "POST",
    key: operatorToken,
    body: { name },
    ...options,
  });

const createFlag = (serverKey: string, body: Record<string, unknown>) =>
  management.call("/api/v1/flags", {
    method: "POST",
    key: serverKey,
    body: { name: "f", ...body },
  });

describe("renaming an environment", () => {
  it("returns and publishes the new name, which later events contain", async () => {
    const { project, first, second, organizationId, serverKey } = await given.scope();
    const path = `${pathOf(project.id)}/${first.id}`;
    const rename = (name: string, key = operatorToken) =>
      management.call(path, { method: "PATCH", key, body: { name } });
    expect((await rename("live", serverKey)).status).toBe(403);
    expect((await rename(second.name)).body.error.code).toBe("CONFLICT_001");
    expect((await rename("live")).body).toEqual({ ...first, name: "live" });
    expect(await entriesOf(management, `${organizationId}.environment.${first.id}`)).toMatchObject([
      { name: first.name, version: 1 },
      { name: "live", version: 2 },
    ]);
    await createFlag(serverKey, { key: "after" });
    const [event] = await management.sql<{ name: string }[]>`
      select payload::jsonb -> 'environment' ->> 'name' as name from outbox
      where stream = 'events' and payload::jsonb ->> 'organization_id' = ${organizationId}`;
    expect(event?.name).toBe("live");
  });
});

describe("the mark of an environment", () => {
  it("is on only for the production environment that a project is created with", async () => {
    const { project, first, second } = await given.scope();
    expect([first, second]).toMatchObject([
      { name: "production", caution: true },
      { name: "staging", caution: false },
    ]);
    await management.call(`${pathOf(project.id)}/${first.id}`, {
      method: "PATCH",
      key: operatorToken,
      body: { name: "live" },
    });
    const added = await create(project.id, "production");
    expect(added.body.caution).toBe(false);
    const marked = await management.call(pathOf(project.id), {
      method: "POST",
      key: operatorToken,
      body: { name: "canary", caution: true },
    });
    expect(marked.body.caution).toBe(true);
  });

  it("is changed by a server key of the project, which cannot rename", async () => {
    const { project, second, serverKey: key, userId } = await given.scope();
    const path = `${pathOf(project.id)}/${second.id}`;
    const change = (body: unknown, by = key) =>
      management.call(path, { method: "PATCH", key: by, body });
    expect((await change({ caution: true })).body).toEqual({ ...second, caution: true });
    expect((await change({ caution: true, name: second.name })).status).toBe(200);
    expect((await change({ caution: false, name: "qa" })).status).toBe(403);
    const bound = await given.key(second, { user_id: userId, environment_only: true });
    expect((await change({ caution: false }, bound.key)).status).toBe(403);
    const other = await given.scope();
    expect((await change({ caution: false }, other.serverKey)).status).toBe(404);
    const log = await management.call(
      `/api/v1/projects/${project.id}/changes?action=environment_changed`,
      { key },
    );
    expect(log.body.changes).toMatchObject([
      { before: { caution: false }, after: { caution: true }, environment_id: second.id },
    ]);
  });
});

describe("creating an environment", () => {
  it("returns 201 and publishes the environment", async () => {
    const { project, organizationId, serverKey } = await given.scope();
    const answer = await create(project.id, "preview");
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`${pathOf(project.id)}/${answer.body.id}`);
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      project_id: project.id,
      name: "preview",
      caution: false,
      protected: null,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    });
    for (const key of [operatorToken, serverKey])
      expect(await readLocationOf(management, answer, key)).toMatchObject({
        status: 200,
        body: answer.body,
      });
    const subject = `${organizationId}.environment.${answer.body.id}`;
    expect(await entriesOf(management, subject)).toMatchObject([
      { kind: "environment", name: "preview", project_id: project.id, version: 1 },
    ]);
    const list = await management.call(pathOf(project.id), { key: operatorToken });
    expect(list.body).toEqual({ environments: [...project.environments, answer.body] });
  });

  it("gives every flag an initial state: disabled, rollout 100, no rules", async () => {
    const { project, organizationId, serverKey, userId } = await given.scope();
    const flag = (await createFlag(serverKey, { key: "a", enabled: true, rollout_percentage: 7 }))
      .body;
    await management.call(`/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      key: serverKey,
      body: { enabled: false },
    });
    const environment = (await create(project.id, "preview", { key: serverKey })).body;
    const state = await management.call(`/api/v1/flags/${flag.id}/environments/${environment.id}`, {
      key: serverKey,
    });
    expect(state.body).toEqual({
      flag_id: flag.id,
      environment_id: environment.id,
      enabled: false,
      rollout_percentage: 100,
      targeting_rules: [],
      version: 2,
      updated_at: environment.created_at,
    });
    const subject = `${organizationId}.flag.${environment.id}.${flag.id}`;
    expect(await entriesOf(management, subject)).toMatchObject([
      { kind: "flag", key: "a", enabled: false, rollout_percentage: 100, version: 2 },
    ]);
    const history = await management.sql`
      select content -> 'enabled' as enabled, change_type, changed_by from history
      where flag_id = ${flag.id} and environment_id = ${environment.id}`;
    expect([...history]).toEqual([{ enabled: false, change_type: "manual", changed_by: userId }]);
    const events = await management.sql`
      select from outbox where stream = 'events' and payload like ${`%${environment.id}%`}`;
    expect(events).toHaveLength(0);
  });

  it("is attributed to the key's user, or to the nil UUID for the operator", async () => {
    const { project, serverKey, userId } = await given.scope();
    const byUser = (await create(project.id, "by-user", { key: serverKey })).body;
    const byOperator = (await create(project.id, "by-operator")).body;
    const actors = await management.sql`
      select environment_id, actor_id from changes
      where environment_id in (${byUser.id}, ${byOperator.id}) order by sequence`;
    expect([...actors]).toEqual([
      { environment_id: byUser.id, actor_id: userId },
      { environment_id: byOperator.id, actor_id: "00000000-0000-0000-0000-000000000000" },
    ]);
  });

  it("rejects a name that already exists in the project", async () => {
    const { project, serverKey } = await given.scope(["production"]);
    await createFlag(serverKey, { key: "a" });
    const again = await create(project.id, "production");
    expect(again.status).toBe(409);
    expect(again.body.error.code).toBe("CONFLICT_001");
  });

  it("happens once for one Idempotency-Key", async () => {
    const { project } = await given.scope();
    const headers = { "idempotency-key": "environment" };
    const answers = await Promise.all(
      [1, 2, 3].map(() => create(project.id, "preview", { headers })),
    );
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
    expect((await create(project.id, "other", { headers })).status).toBe(409);
  });

  it("is rejected if the project has 50 environments; more from an earlier release are kept", async () => {
    const names = Array.from({ length: 49 }, (_, index) => `environment-${index}`);
    const { project } = await given.scope(names);
    const answers = await Promise.all([1, 2, 3].map((index) => create(project.id, `new-${index}`)));
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409, 409]);
    const rejected = answers.find((answer) => answer.status === 409);
    expect(rejected?.body.error).toMatchObject({
      code: "CONFLICT_001",
      message: "The project has 50 environments. The maximum is 50.",
    });

    await management.sql`
      insert into environments values (${uuidv7()}, ${project.id}, 'from release 0.1.0', now())`;
    expect((await create(project.id, "another")).status).toBe(409);
    const list = await management.call(pathOf(project.id), { key: operatorToken });
    expect(list.body.environments).toHaveLength(51);
  });
});

describe("creating environments during changes of flags", () => {
  it("leaves every flag with a state in every environment", async () => {
    const { project, serverKey } = await given.scope();
    const early = await Promise.all(
      Array.from({ length: 15 }, (_, index) => createFlag(serverKey, { key: `early-${index}` })),
    );
    const answers = await Promise.all([
      ...Array.from({ length: 8 }, (_, index) => [
        create(project.id, `environment-${index}`, index % 2 ? { key: serverKey } : {}),
        createFlag(serverKey, { key: `late-${index}`, enabled: true }),
      ]).flat(),
      ...early
        .slice(0, 8)
        .map(({ body }) =>
          management.call(`/api/v1/flags/${body.id}`, { method: "DELETE", key: serverKey }),
        ),
      ...early.slice(5).map(({ body }) =>
        management.call(`/api/v1/flags/${body.id}`, {
          method: "PATCH",
          key: serverKey,
          body: { enabled: true },
        }),
      ),
    ]);
    const statuses = new Set(answers.map((answer) => answer.status));
    // A concurrent deletion may remove a flag before its change.
    expect([...statuses].filter((status) => ![200, 201, 204, 404].includes(status))).toEqual([]);
    expect(answers.filter((answer) => answer.status === 201)).toHaveLength(16);

    const [counts] = await management.sql`
      select
        (select count(*)::integer from flags where project_id = ${project.id}) as flags,
        (select count(*)::integer from environments where project_id = ${project.id}) as environments,
        (select count(*)::integer from flag_states as state
          join flags as flag on flag.id = state.flag_id
          where flag.project_id = ${project.id}) as states`;
    expect(counts).toEqual({ flags: 15, environments: 10, states: 150 });
  });

  it("publishes the tombstone of each deleted flag last", async () => {
    const { project, serverKey } = await given.scope(["production"]);
    const flags = await Promise.all(
      Array.from({ length: 10 }, (_, index) => createFlag(serverKey, { key: `flag-${index}` })),
    );
    const answers = await Promise.all([
      ...[1, 2, 3].map((index) => create(project.id, `environment-${index}`)),
      ...flags.map(({ body }) =>
        management.call(`/api/v1/flags/${body.id}`, { method: "DELETE", key: serverKey }),
      ),
    ]);
    expect(answers.map((answer) => answer.status)).toEqual([
      ...Array.from({ length: 3 }, () => 201),
      ...Array.from({ length: 10 }, () => 204),
    ]);
    for (const { body } of flags) {
      const newest = await management.sql<{ tombstone: boolean }[]>`
        select distinct on (subject) tombstone from outbox
        where subject like ${`%.flag.%.${body.id}`}
        order by subject, id desc`;
      expect(newest.length).toBeGreaterThanOrEqual(1);
      expect(newest.every((row) => row.tombstone)).toBe(true);
    }
  });
});

describe("access to the environments of a project", () => {
  it("requires the environment's own project in the path", async () => {
    const { project, first, serverKey } = await given.scope();
    const other = await given.scope();
    for (const [path, key] of [
      [`${pathOf(other.project.id)}/${first.id}`, operatorToken],
      [`${pathOf(project.id)}/${other.first.id}`, serverKey],
      [`${pathOf(project.id)}/${uuidv7()}`, serverKey],
      [`${pathOf(project.id)}/nonsense`, serverKey],
    ] as const) {
      const answer = await management.call(path, { key });
      expect(answer.status).toBe(404);
      expect(answer.body.error.code).toBe("NOT_FOUND_001");
    }
  });

  it("is limited to the operator and the project's server keys; others get 404", async () => {
    const { project, first, serverKey } = await given.scope();
    const other = await given.scope();
    for (const [key, status] of [
      [operatorToken, 200],
      [serverKey, 200],
      [other.serverKey, 404],
    ] as const)
      for (const path of [pathOf(project.id), `${pathOf(project.id)}/${first.id}`])
        expect((await management.call(path, { key })).status).toBe(status);
    const rejected = await create(project.id, "intruder", { key: other.serverKey });
    expect(rejected.status).toBe(404);
    expect(rejected.body.error.code).toBe("NOT_FOUND_001");
  });

  it("accepts the project's id in upper and lower case", async () => {
    const { project, serverKey } = await given.scope();
    const path = pathOf(project.id.toUpperCase());
    expect((await management.call(path, { key: serverKey })).body.environments).toHaveLength(2);
  });

  it("is read-only for an environment_only key", async () => {
    const { project, first, second, userId } = await given.scope();
    const bound = await given.key(first, { user_id: userId, environment_only: true });
    for (const path of [pathOf(project.id), `${pathOf(project.id)}/${second.id}`])
      expect((await management.call(path, { key: bound.key })).status).toBe(200);
    const rejected = await create(project.id, "preview", { key: bound.key });
    expect(rejected.status).toBe(403);
    expect(rejected.body.error.code).toBe("AUTH_002");
  });

  it("is forbidden for a client key, and returns 404 for an unknown project", async () => {
    const { project, first, userId } = await given.scope();
    const client = await given.key(first, { user_id: userId, kind: "client" });
    for (const path of [pathOf(project.id), `${pathOf(project.id)}/${first.id}`])
      expect((await management.call(path, { key: client.key })).status).toBe(403);
    expect((await create(uuidv7(), "preview")).status).toBe(404);
    expect((await create("nonsense", "preview")).status).toBe(404);
  });
});
