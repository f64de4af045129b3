import { randomUUID } from "node:crypto";
import { recordedStatements } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import postgres from "postgres";
import { listChanges } from "../../src/audit/audit-store.ts";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { tenancyOf } from "../tenancy-fixture.ts";

/** Tests reading the audit log as the operator and with server keys of the project. */

const management = await openManagement();
afterAll(() => management.close());
const given = tenancyOf(management);

type Scope = Awaited<ReturnType<ReturnType<typeof tenancyOf>["scope"]>>;

const pathOf = (projectId: string) => `/api/v1/projects/${projectId}/changes`;

const read = (scope: Scope, query = "", key = scope.serverKey) =>
  management.call(pathOf(scope.project.id) + query, { key });

async function changesOf(scope: Scope, query = "", key = scope.serverKey) {
  const answer = await read(scope, query, key);
  expect(answer.status).toBe(200);
  return answer.body.changes;
}

async function send(scope: Scope, method: string, path: string, body?: unknown) {
  const answer = await management.call(path, { method, key: scope.serverKey, body });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

let counter = 0;
const createFlag = (scope: Scope, body: Record<string, unknown> = {}) =>
  send(scope, "POST", "/api/v1/flags", { key: `flag-${++counter}`, name: "A flag", ...body });

const nilId = "00000000-0000-0000-0000-000000000000";
const off = { enabled: false, rollout_percentage: 100, targeting_rules: [] };
const settings = {
  name: "A flag",
  description: "",
  type: "release",
  tags: [],
  owner: null,
  archived: false,
};

describe("the audit log of a project", () => {
  it("contains all changes of a flag, newest first, even after its deletion", async () => {
    const scope = await given.scope();
    const flag = await createFlag(scope, { enabled: true });
    const path = `/api/v1/flags/${flag.id}`;
    await send(scope, "PATCH", path, { name: "Renamed", rollout_percentage: 5 });
    await send(scope, "PATCH", `${path}/environments/${scope.second.id}`, { enabled: true });
    await send(scope, "POST", `${path}/environments/${scope.second.id}/rollback`);
    await send(scope, "DELETE", path);

    const [organizationUser] =
      await management.sql`select id, email from users where id = ${scope.userId}`;
    const common = {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      flag_id: flag.id,
      flag_key: flag.key,
      key_id: null,
      webhook_id: null,
      user_id: null,
      actor: { ...organizationUser, via: "key" },
      api_key_id: scope.serverKey.slice(3, 19),
      change_type: "manual",
      changed_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    };
    const renamed = { ...settings, name: "Renamed" };
    const first = { environment_id: scope.first.id };
    const second = { environment_id: scope.second.id };
    const on = { ...off, enabled: true };
    const atFive = { ...on, rollout_percentage: 5 };
    const last = { ...renamed, ...atFive };
    expect(await changesOf(scope, `?flag_id=${flag.id}`)).toEqual([
      { ...common, ...first, action: "deleted", before: last, after: null },
      { ...common, ...second, action: "state", change_type: "rollback", before: on, after: off },
      { ...common, ...second, action: "state", before: off, after: on },
      { ...common, ...first, action: "settings", before: { ...settings, ...on }, after: last },
      { ...common, ...first, action: "created", before: null, after: { ...settings, ...on } },
    ]);
  });

  it("contains environments and keys, but no secrets", async () => {
    const scope = await given.scope(["production"]);
    const environments = `/api/v1/projects/${scope.project.id}/environments`;
    const keys = `${environments}/${scope.first.id}/keys`;
    const issued = await send(scope, "POST", keys, {
      kind: "client",
      name: "Web",
      user_id: scope.userId,
    });
    const rotated = await send(scope, "POST", `${keys}/${issued.id}/rotate`, {});
    await send(scope, "DELETE", `${keys}/${rotated.id}`);
    const answer = await read(scope);
    const listed = answer.body.changes.map((change: Record<string, unknown>) => [
      change.action,
      change.key_id,
      (change.before as { revoked_at?: unknown } | null)?.revoked_at,
      (change.after as { revoked_at?: unknown } | null)?.revoked_at,
      change.api_key_id,
    ]);
    const usedKey = scope.serverKey.slice(3, 19);
    const aTime = expect.stringMatching(/Z$/);
    expect(listed).toEqual([
      ["key_revoked", rotated.id, null, aTime, usedKey],
      ["key_rotated", issued.id, null, aTime, usedKey],
      ["key_issued", issued.id, undefined, null, usedKey],
      ["key_issued", usedKey, undefined, null, null],
      ["environment_created", null, undefined, undefined, null],
      ["project_created", null, undefined, undefined, null],
      ["user_created", null, undefined, undefined, null],
    ]);
    expect(answer.body.changes.at(-3)).toMatchObject({
      flag_id: null,
      flag_key: null,
      environment_id: scope.first.id,
      actor: { id: "00000000-0000-0000-0000-000000000000", email: "operator" },
      before: null,
      after: { name: "production" },
    });

    const secrets = await management.sql<{ secret_sha256: string }[]>`
      select secret_sha256 from api_keys where environment_id = ${scope.first.id}`;
    expect(secrets).toHaveLength(3);
    const text = JSON.stringify(answer.body);
    for (const { secret_sha256 } of secrets) expect(text).not.toContain(secret_sha256);
    for (const { key } of [issued, rotated]) expect(text).not.toContain(key.slice(20));
    expect(text).not.toMatch(/secret|sha256/);
  });

  it("contains the organization's users in the audit log of every project", async () => {
    const scope = await given.scope();
    const other = await given.project(scope.organizationId);
    const [{ email }] = await management.sql<[{ email: string }]>`
      select email from users where id = ${scope.userId}`;
    const created = {
      action: "user_created",
      user_id: scope.userId,
      environment_id: null,
      actor: { id: "00000000-0000-0000-0000-000000000000", email: "operator" },
      api_key_id: null,
      before: null,
      after: { email, name: null },
    };
    for (const project of [scope.project, other]) {
      const [first, second] = (
        await management.call(pathOf(project.id), { key: operatorToken })
      ).body.changes.slice(-2);
      expect([first, second]).toMatchObject([
        { action: "project_created", before: null, after: { name: project.name } },
        created,
      ]);
    }
    const page = await management.call(`${pathOf(other.id)}?limit=1`, { key: operatorToken });
    const rest = await management.call(`${pathOf(other.id)}?cursor=${page.body.next_cursor}`, {
      key: operatorToken,
    });
    expect(rest.body.changes.at(-1)).toMatchObject(created);
    const stranger = await given.scope();
    const ofOthers = (await changesOf(stranger)).map((each: { user_id: unknown }) => each.user_id);
    expect(ofOthers).not.toContain(scope.userId);
  });

  it("omits requests that changed nothing", async () => {
    const scope = await given.scope();
    const flag = await createFlag(scope);
    await send(scope, "PATCH", `/api/v1/flags/${flag.id}`, { enabled: false, name: "A flag" });
    expect(await changesOf(scope, `?flag_id=${flag.id}`)).toHaveLength(1);
  });

  it("contains nothing for an unknown flag", async () => {
    const scope = await given.scope();
    const answer = await read(scope, `?flag_id=${randomUUID()}`);
    expect(answer.body).toEqual({ changes: [], next_cursor: null });
  });
});

describe("paging", () => {
  it("selects the changes of one actor, of one action and of a period", async () => {
    const scope = await given.scope();
    const flag = await createFlag(scope);
    await send(scope, "PATCH", `/api/v1/flags/${flag.id}`, { enabled: true });
    const actionsOf = async (query: string) =>
      (await changesOf(scope, query)).map(({ action }: { action: string }) => action);
    const byUser = `?actor_id=${scope.userId}`;
    expect(await actionsOf(byUser)).toEqual(["state", "created"]);
    const byOperator = await changesOf(scope, `?actor_id=${nilId}`);
    expect(byOperator.length).toBeGreaterThan(0);
    const operator = { id: nilId, email: "operator", via: "operator" };
    for (const { actor } of byOperator) expect(actor).toEqual(operator);
    expect(await actionsOf(`?actor_id=${randomUUID()}`)).toEqual([]);

    const [{ changed_at: last }] = await changesOf(scope);
    expect(await actionsOf(`${byUser}&action=state&since=${last}`)).toEqual(["state"]);
    expect(await actionsOf(`${byUser}&until=${last}`)).toEqual(["created"]);
    expect(await actionsOf(`?since=${last}&until=${last}`)).toEqual([]);
    const first = await read(scope, `${byUser}&limit=1`);
    const { next_cursor: cursor } = first.body;
    expect(await actionsOf(`${byUser}&limit=1&cursor=${cursor}`)).toEqual(["created"]);
  });

  it.each(["actor_id=ada", "since=yesterday", "until=2027-01-31", "action=renamed"])(
    "rejects the filter %s",
    async (filter) => {
      const scope = await given.scope();
      expect((await read(scope, `?${filter}`)).body.error.code).toBe("VALIDATION_001");
    },
  );

  it("returns a hundred entries, then the older ones", async () => {
    const scope = await given.scope();
    const flag = await createFlag(scope);
    for (let percentage = 0; percentage < 100; percentage += 1)
      await send(scope, "PATCH", `/api/v1/flags/${flag.id}`, { rollout_percentage: percentage });
    const first = await read(scope, `?flag_id=${flag.id}`);
    expect(first.body.changes).toHaveLength(100);
    const rest = await read(scope, `?flag_id=${flag.id}&cursor=${first.body.next_cursor}`);
    expect(rest.body).toMatchObject({ changes: [{ action: "created" }], next_cursor: null });
  });

  it("returns each entry once during concurrent changes", async () => {
    const scope = await given.scope();
    const flag = await createFlag(scope);
    for (let percentage = 0; percentage < 10; percentage += 1)
      await send(scope, "PATCH", `/api/v1/flags/${flag.id}`, { rollout_percentage: percentage });
    const all = await changesOf(scope);
    const seen: unknown[] = [];
    for (let cursor: string | null = ""; cursor !== null; ) {
      const page = await read(scope, `?limit=3${cursor && `&cursor=${cursor}`}`);
      seen.push(...page.body.changes);
      cursor = page.body.next_cursor;
      await send(scope, "PATCH", `/api/v1/flags/${flag.id}`, {
        rollout_percentage: 50 + seen.length,
      });
    }
    expect(seen).toEqual(all);
  });

  it.each([
    ["limit=0", "/limit"],
    ["limit=1001", "/limit"],
    ["limit=x", "/limit"],
    ["flag_id=nonsense", "/flag_id must be an id"],
    ["cursor=", "/cursor"],
    ["cursor=nonsense", "/cursor"],
    ["cursor=%00", "/cursor"],
    [`cursor=${Buffer.from(randomUUID()).toString("base64url")}`, "/cursor"],
    [`cursor=${Buffer.from("x".repeat(36)).toString("base64url")}`, "/cursor"],
    [`cursor=${"A".repeat(500)}`, "/cursor"],
    ["before=1", "/before"],
  ])("rejects ?%s, naming %s", async (query, parameter) => {
    const scope = await given.scope();
    const answer = await read(scope, `?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe("VALIDATION_001");
    expect(answer.body.error.message).toContain(`query parameter ${parameter}`);
  });

  it("rejects the cursor of another project", async () => {
    const [one, other] = [await given.scope(), await given.scope()];
    const { body } = await read(one, "?limit=1");
    expect((await read(other, `?cursor=${body.next_cursor}`)).status).toBe(400);
  });
});

describe("reading the audit log", () => {
  it("is limited to the operator and the project's server keys; others get 404", async () => {
    const [scope, stranger] = [await given.scope(), await given.scope()];
    expect(await changesOf(scope, "", operatorToken)).toEqual(await changesOf(scope));
    for (const [path, key] of [
      [pathOf(scope.project.id), stranger.serverKey],
      [pathOf(randomUUID()), operatorToken],
      [pathOf(randomUUID()), scope.serverKey],
      [pathOf("nonsense"), operatorToken],
    ] as const) {
      const answer = await management.call(path, { key });
      expect([answer.status, answer.body.error.code]).toEqual([404, "NOT_FOUND_001"]);
    }
  });

  it("is forbidden for a client key", async () => {
    const scope = await given.scope();
    const client = await given.key(scope.first, { kind: "client", user_id: scope.userId });
    const answer = await read(scope, "", client.key);
    expect([answer.status, answer.body.error.code]).toEqual([403, "AUTH_002"]);
    expect((await management.call(pathOf(scope.project.id))).status).toBe(401);
  });

  it("is limited to the key's environment for an environment_only key", async () => {
    const scope = await given.scope();
    const bound = await given.key(scope.second, { user_id: scope.userId, environment_only: true });
    const flag = await createFlag(scope);
    const path = `/api/v1/flags/${flag.id}`;
    await send(scope, "PATCH", path, { name: "Renamed", enabled: true });
    await send(scope, "PATCH", `${path}/environments/${scope.second.id}`, { enabled: true });
    await send(scope, "DELETE", path);
    const seen = await changesOf(scope, "", bound.key);
    expect(seen.map((change: { action: string }) => change.action)).toEqual([
      "state",
      "key_issued",
      "environment_created",
    ]);
    expect(await changesOf(scope)).toContainEqual(
      expect.objectContaining({ action: "project_created" }),
    );
    for (const change of seen) expect(change.environment_id).toBe(scope.second.id);
    expect(seen[0].after).toMatchObject({ enabled: true });
    const ofFlag = await changesOf(scope, `?flag_id=${flag.id}&limit=1`, bound.key);
    expect(ofFlag).toEqual([seen[0]]);
  });
});

describe("given a log of a hundred thousand entries", () => {
  const [projectId, flagId, environmentId] = [randomUUID(), randomUUID(), randomUUID()];
  const [organizationId, actorId] = [randomUUID(), randomUUID()];
  let admin: postgres.Sql;

  beforeAll(async () => {
    admin = postgres(management.adminUrl, { max: 1, connection: { search_path: "management" } });
    await admin`
      insert into changes (id, project_id, environment_id, flag_id, flag_key, action, cause,
        actor_id, actor_email, changed_at)
      select gen_random_uuid(),
        case when number % 10 < 8 then ${projectId} else gen_random_uuid() end::uuid,
        case when number % 500 = 0 then ${environmentId} else gen_random_uuid() end::uuid,
        case when number % 1000 = 0 then ${flagId} else gen_random_uuid() end::uuid,
        'a', 'state', 'manual',
        case when number % 1000 = 0 then ${actorId} else gen_random_uuid() end::uuid,
        'a@example.com', now()
      from generate_series(1, 100000) as number`;
    await admin`
      insert into changes (id, organization_id, user_id, action, cause, actor_id, actor_email, changed_at)
      select gen_random_uuid(),
        case when number % 10 < 8 then ${organizationId} else gen_random_uuid() end::uuid,
        gen_random_uuid(), 'user_created', 'manual', gen_random_uuid(), 'operator', now()
      from generate_series(1, 10000) as number`;
    await admin`analyze changes`;
  });
  afterAll(() => admin.end());

  it.each([
    ["of the project", {}, ["changes_newest_first", "changes_of_users_newest_first"]],
    ["of a flag", { flagId }, ["changes_of_flag_newest_first"]],
    ["of an environment", { environmentId }, ["changes_of_environment_newest_first"]],
    ["of an actor", { actorId }, ["changes_of_actor_newest_first", "changes_of_users_by_actor"]],
  ])("reads a page %s from its index, without sorting", async (_what, which, indexes) => {
    const page = { beforeSequence: 50_000, limit: 100 };
    const [statement] = await recordedStatements((sql) =>
      listChanges(sql, { projectId, organizationId, ...which }, page),
    );
    const rows = await admin.unsafe<{ "QUERY PLAN": string }[]>(
      `explain (costs off) ${statement?.text}`,
      statement?.values as never[],
    );
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    for (const index of indexes) expect(plan).toContain(`using ${index} on changes`);
    expect(plan).toMatch(/Index Cond: .*sequence </);
    expect(plan).not.toContain("Seq Scan");
    expect(plan).not.toMatch(/-> {2}(Incremental )?Sort/);
  });
});
