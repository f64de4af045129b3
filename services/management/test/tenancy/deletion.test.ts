import { entryKey, erasedEmail, routes, snapshotBucket } from "@halyard/contracts";
import { eventually, readEpoch } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { v7 as uuidv7 } from "uuid";
import { readActor } from "../../src/access/change-context.ts";
import { countWorkingKeysOfUser } from "../../src/keys/key-store.ts";
import { readFullState } from "../../src/publishing/full-state.ts";
import { removedAtOnce, removeNextBatch } from "../../src/upkeep/remove-deleted.ts";
import { expectWholeHistory } from "../flag-fixture.ts";
import {
  type Management,
  openManagement,
  operatorToken,
  signInSettings,
} from "../management-fixture.ts";
import { entriesOf, seedFlags, tenancyOf } from "../tenancy-fixture.ts";

let management: Management;
let given: ReturnType<typeof tenancyOf>;
beforeAll(async () => {
  management = await openManagement({
    signIn: signInSettings(),
    removesDeleted: false,
    fillsEnvironments: false,
  });
  given = tenancyOf(management);
});
afterAll(() => management.close());

type Scope = Awaited<ReturnType<typeof given.scope>>;

const organizationPath = ({ organizationId }: Scope) => `/api/v1/organizations/${organizationId}`;
const projectPath = (scope: Scope) => `${organizationPath(scope)}/projects/${scope.project.id}`;
const environmentPath = (scope: Scope) =>
  `/api/v1/projects/${scope.project.id}/environments/${scope.first.id}`;
const userPath = (scope: Scope) => `${organizationPath(scope)}/users/${scope.userId}`;

const call = (path: string, method = "GET", options: { key?: string; body?: unknown } = {}) =>
  management.call(path, { method, key: operatorToken, ...options });

const remove = (path: string, query = "") =>
  call(`${path}?confirm=${path.split("/").at(-1)}${query}`, "DELETE");

const removeBatch = async () => {
  const removed = await management.writer(async (write) => ({
    more: await removeNextBatch(write, new Date()),
  }));
  return "more" in removed && removed.more;
};
async function removeEverything(): Promise<number> {
  let batches = 0;
  while (await removeBatch()) batches += 1;
  return batches;
}

async function rowsBelow({ organizationId, project }: Scope) {
  const [row] = await management.sql<[{ flags: number; states: number; keys: number }]>`
    select
      (select count(*)::integer from flags where project_id = ${project.id}) as flags,
      (select count(*)::integer from flag_states as state
        join flags as flag on flag.id = state.flag_id
        where flag.project_id = ${project.id}) as states,
      (select count(*)::integer from api_keys as key
        join users as member on member.id = key.user_id
        where member.organization_id = ${organizationId}) as keys`;
  return row;
}

async function scopeWithFlags(count: number) {
  const scope = await given.scope(["production"]);
  const { project, first, userId } = scope;
  const flagIds = await seedFlags(
    management,
    { projectId: project.id, environmentId: first.id, userId },
    count,
  );
  return { ...scope, flagIds };
}

it("deletes the users of a deleted organization immediately", async () => {
  const scope = await given.scope();
  await remove(organizationPath(scope));
  expect((await call(userPath(scope))).status).toBe(404);
  expect((await call(userPath(scope), "PATCH", { body: { name: "Ada" } })).status).toBe(404);
  expect((await remove(userPath(scope))).status).toBe(404);
  await removeEverything();
});

const ofEnvironment = ["environmentId", "envId"];
const ofProject = ["projectId", ...ofEnvironment];
const ofOrganization = ["organizationId", "userId", ...ofProject];

describe.each([
  { subject: "organization", pathOf: organizationPath, parameters: ofOrganization },
  { subject: "project", pathOf: projectPath, parameters: ofProject },
  { subject: "environment", pathOf: environmentPath, parameters: ofEnvironment },
])("every read below a deleted $subject", ({ subject, pathOf, parameters }) => {
  afterEach(removeEverything);

  it("returns 404 immediately, except the audit log of the operator", async () => {
    const scope = await scopeWithFlags(1);
    const { organizationId, project, first, userId, flagIds } = scope;
    const { id: keyId } = await given.key(first, { user_id: userId });
    const other = await given.environment(project.id);
    const { key: keyOfOther } = await given.key(other, { user_id: userId });
    const [flagId = ""] = flagIds;
    const ids: Record<string, string> = {
      ...{ organizationId, userId, projectId: project.id, flagId, keyId },
      ...{ environmentId: first.id, envId: first.id },
    };
    const reads = routes
      .filter(({ service, method }) => service === "management" && method === "GET")
      .filter(({ operationId }) => operationId !== "listChanges")
      .filter(({ path }) => parameters.some((name) => path.split("/").includes(`:${name}`)))
      .flatMap(({ path, access }) => {
        const real = path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] as string);
        const byOperator = { path: real, key: operatorToken };
        const byKey = { path: real, key: keyOfOther };
        // The keys of a deleted project are invalid themselves.
        if (subject !== "environment") return access.startsWith("operator") ? [byOperator] : [];
        return access === "server_key" ? [byKey] : [byOperator, byKey];
      });
    const statuses = async () =>
      Promise.all(
        reads.map(async ({ path, key }) => {
          const controller = new AbortController();
          const { status } = await fetch(`${management.url}${path}`, {
            headers: { authorization: `Bearer ${key}` },
            signal: controller.signal,
          });
          controller.abort();
          return { path, status };
        }),
      );
    expect((await statuses()).filter(({ status }) => status !== 200)).toEqual([]);
    await remove(pathOf(scope));
    expect((await statuses()).filter(({ status }) => status !== 404)).toEqual([]);
  });
});

describe.each([
  { subject: "organization", pathOf: organizationPath, action: "project_deleted" },
  { subject: "project", pathOf: projectPath, action: "project_deleted" },
  { subject: "environment", pathOf: environmentPath, action: "environment_deleted" },
  { subject: "user", pathOf: userPath, action: "user_deleted" },
])("deleting a $subject", ({ pathOf, action }) => {
  it("requires its id as confirmation", async () => {
    const scope = await given.scope();
    for (const query of ["", `?confirm=${scope.second.id}`])
      expect((await call(pathOf(scope) + query, "DELETE")).status).toBe(400);
    expect((await call(pathOf(scope))).status).toBe(200);
  });

  it("is allowed to the operator only", async () => {
    const scope = await given.scope();
    const path = pathOf(scope);
    const answer = await call(`${path}?confirm=${path.split("/").at(-1)}`, "DELETE", {
      key: scope.serverKey,
    });
    expect(answer.status).toBe(403);
  });

  it("is one entry of the audit log", async () => {
    const scope = await given.scope();
    await remove(pathOf(scope));
    const deletions = await management.sql`
      select action from changes
      where (${scope.organizationId} = organization_id or ${scope.project.id} = project_id)
        and action like '%\_deleted'`;
    expect([...deletions]).toEqual([{ action }]);
  });

  it("takes effect for it and its keys immediately, before any row below it is removed", async () => {
    const scope = await given.scope();
    const path = pathOf(scope);
    expect((await remove(path)).status).toBe(204);
    expect((await call(path)).status).toBe(404);
    expect((await remove(path)).status).toBe(404);
    expect((await call("/api/v1/flags", "GET", { key: scope.serverKey })).status).toBe(401);
  });
});

describe("given a deleted project with many flags", () => {
  afterEach(removeEverything);

  it("has one tombstone for the project and one for each environment, and no event", async () => {
    const scope = await scopeWithFlags(3);
    await remove(projectPath(scope));
    const { organizationId, project, first } = scope;
    for (const subject of [`project.${project.id}`, `environment.${first.id}`])
      expect((await entriesOf(management, `${organizationId}.${subject}`)).at(-1)).toMatchObject({
        deleted: true,
        version: 2,
      });
    await removeEverything();
    const events = await management.sql`
      select from outbox
      where stream = 'events' and payload::jsonb ->> 'organization_id' = ${organizationId}`;
    expect(events).toHaveLength(0);
  });

  it("removes rows in bounded batches, without tombstones of its flags", async () => {
    const scope = await scopeWithFlags(2 * removedAtOnce + 1);
    await remove(projectPath(scope));
    await removeBatch();
    expect(await rowsBelow(scope)).toMatchObject({ states: removedAtOnce + 1, keys: 0 });
    await removeEverything();
    expect(await rowsBelow(scope)).toEqual({ flags: 0, states: 0, keys: 0 });
    const tombstones = await management.sql`
      select from outbox where tombstone and subject like ${`${scope.organizationId}.flag.%`}`;
    expect(tombstones).toHaveLength(0);
    expect(await removeBatch()).toBe(false);
  });

  it("stays deleted after a snapshot rebuild, even if a change below it is unsent", async () => {
    const scope = await given.scope();
    const id = scope.serverKey.split("_")[1] ?? "";
    const subject = `${scope.organizationId}.key.${id}`;
    const [entry] = await entriesOf(management, subject);
    await remove(projectPath(scope));
    const connection = await connect({ servers: management.natsUrl });
    const manager = await jetstreamManager(connection);
    const before = await readEpoch(manager);
    await manager.streams.delete(snapshotBucket.streamName);
    await management.sql`
      insert into outbox (stream, message_id, subject, payload)
      values ('snapshot', gen_random_uuid(), ${subject}, ${JSON.stringify({ ...entry, version: 9 })})`;
    await eventually(async () => ![undefined, before].includes(await readEpoch(manager)));
    await eventually(() => management.directory.versionOf(id) === 9);
    expect(management.directory.verify(scope.serverKey, Date.now())).toBeUndefined();
    await connection.close();
  });

  it("has no working keys, even before their rows are removed", async () => {
    const scope = await given.scope();
    const email = (await call(userPath(scope))).body.email.toLowerCase();
    expect(await countWorkingKeysOfUser(management.sql, email)).toBeGreaterThan(0);
    await remove(projectPath(scope));
    expect(await rowsBelow(scope)).not.toMatchObject({ keys: 0 });
    expect(await countWorkingKeysOfUser(management.sql, email)).toBe(0);
  });

  it("frees its name and no longer counts towards the plan's limit", async () => {
    const { id } = await given.organization({ plan: "free" });
    const first = await given.project(id, { name: "Web" });
    const path = `/api/v1/organizations/${id}/projects`;
    const again = () => call(path, "POST", { body: { name: "Web" } });
    const limits = (await call(`/api/v1/organizations/${id}`)).body.limits;
    for (let more = 1; more < limits.projects; more += 1) await given.project(id);
    expect((await again()).status).toBe(429);
    await remove(`${path}/${first.id}`);
    expect((await again()).status).toBe(201);
    expect((await entriesOf(management, `${id}.organization`)).at(-1)).toMatchObject({
      project_count: limits.projects,
    });
  });

  it("keeps its audit log for the operator", async () => {
    const scope = await given.scope();
    await remove(projectPath(scope));
    await removeEverything();
    const { status, body } = await call(`/api/v1/projects/${scope.project.id}/changes`);
    expect(status).toBe(200);
    expect(body.changes[0]).toMatchObject({
      action: "project_deleted",
      before: { name: scope.project.name },
      after: null,
    });
    expect((await call(`/api/v1/projects/${scope.project.id}/environments`)).status).toBe(404);
  });

  it("has only tombstones in a rebuilt snapshot, even before its rows are removed", async () => {
    const scope = await scopeWithFlags(3);
    const other = await scopeWithFlags(1);
    await remove(projectPath(scope));
    const found = new Map<string, unknown>();
    for await (const page of readFullState(management.sql))
      for (const { address, value } of page) found.set(entryKey(address), value);
    const below = [...found].filter(
      ([key]) => key.startsWith(scope.organizationId) && !key.endsWith(".organization"),
    );
    expect(below).toHaveLength(2);
    for (const [, value] of below) expect(value).toMatchObject({ deleted: true });
    expect(found.has(`${other.organizationId}.flag.${other.first.id}.${other.flagIds[0]}`)).toBe(
      true,
    );
  });

  it("has its tombstones on several pages of a rebuilt snapshot, and is removed in few batches", async () => {
    const scope = await given.scope();
    const count = 1_200;
    await management.sql`
      insert into environments (id, project_id, name, created_at)
      select gen_random_uuid(), ${scope.project.id}, 'environment-' || number, now()
      from generate_series(1, ${count}) as number`;
    await remove(projectPath(scope));
    const pages: number[] = [];
    const found = new Set<string>();
    for await (const page of readFullState(management.sql)) {
      const scopes = page
        .filter(({ value }) => "deleted" in value)
        .map(({ address }) => entryKey(address))
        .filter((key) => key.startsWith(`${scope.organizationId}.environment.`));
      pages.push(page.length);
      for (const key of scopes) found.add(key);
    }
    expect(found.size).toBeGreaterThan(count);
    expect(Math.max(...pages)).toBeLessThanOrEqual(500);
    expect(await removeEverything()).toBeLessThan(count / removedAtOnce + 10);
    const [row] = await management.sql`select has_rows_to_remove() as more`;
    expect(row?.more).toBe(false);
  });

  it("leaves a history that can be verified", async () => {
    const scope = await scopeWithFlags(3);
    await remove(projectPath(scope));
    await expectWholeHistory(management.sql);
    await removeEverything();
    await expectWholeHistory(management.sql);
  });
});

describe("given a process that stops between a deletion and the removal of rows", () => {
  it("leaves the removal to the next process", async () => {
    const before = await openManagement({ removesDeleted: false });
    const { organization, user, project } = tenancyOf(before);
    const { id: organizationId } = await organization();
    const { id: userId } = await user(organizationId);
    const { id: projectId, environments } = await project(organizationId);
    const [{ id: environmentId }] = environments;
    const scope = { projectId, environmentId, userId };
    await seedFlags(before, scope, removedAtOnce + 1);
    const path = `/api/v1/organizations/${organizationId}/projects/${projectId}`;
    const options = { method: "DELETE", key: operatorToken };
    expect((await before.call(`${path}?confirm=${projectId}`, options)).status).toBe(204);
    await before.writer(async (write) => ({ more: await removeNextBatch(write, new Date()) }));
    await before.stop();

    const after = await openManagement({ over: before.backends });
    await eventually(async () => {
      const rows = await after.sql`select from flags where project_id = ${projectId}`;
      return rows.length === 0;
    });
    // The relay sends the tombstones of the last batch after its commit.
    await eventually(async () => {
      const unsent = await after.sql`select from outbox where sent_at is null`;
      return unsent.length === 0;
    });
    await after.close();
  });
});

describe("given rules in two projects", () => {
  it("frees the size of the rules of a deleted flag immediately, and of all others with their rows", async () => {
    const scope = await given.scope(["production", "staging"]);
    const rules = [{ name: "x".repeat(100), conditions: [] }];
    const bytes = JSON.stringify(rules).length - 2;
    const used = async () => (await call(organizationPath(scope))).body.configuration_bytes.used;
    const stagingKey = await given.key(scope.second, { user_id: scope.userId });
    const other = await given.project(scope.organizationId);
    const otherKey = await given.key(other.environments[0], { user_id: scope.userId });
    const create = (key: string, flagKey: string) =>
      call("/api/v1/flags", "POST", {
        key,
        body: { key: flagKey, name: "f", targeting_rules: rules },
      });
    const { body: flag } = await create(scope.serverKey, "deleted");
    await create(scope.serverKey, "in-production");
    await create(stagingKey.key, "in-staging");
    await create(otherKey.key, "in-another-project");
    expect(await used()).toBe(4 * bytes);
    await call(`/api/v1/flags/${flag.id}`, "DELETE", { key: scope.serverKey });
    expect(await used()).toBe(3 * bytes);
    await remove(environmentPath(scope));
    await removeEverything();
    expect(await used()).toBe(2 * bytes);
    await remove(projectPath(scope));
    await removeEverything();
    expect(await used()).toBe(bytes);
  });
});

describe("given a deleted project with audiences", () => {
  it("has tombstones of its audiences and their chunks, and removes all rows and their size", async () => {
    const scope = await given.scope(["production"]);
    const used = async () => (await call(organizationPath(scope))).body.configuration_bytes.used;
    const options = { key: scope.serverKey };
    const body = { key: "beta", name: "Beta" };
    expect(await call("/api/v1/audiences", "POST", { ...options, body })).toMatchObject({
      status: 201,
    });
    const entries = { add: ["ada", "grace"] };
    await call("/api/v1/audiences/beta/list", "PATCH", { ...options, body: entries });
    expect(await used()).toBe(16);
    const { sql } = management;
    const [audience] = await sql<[{ id: string; sha256: string }]>`
      select audience_id as id, sha256 from audience_chunks
      join audiences on audiences.id = audience_chunks.audience_id
      where project_id = ${scope.project.id}`;
    await remove(projectPath(scope));
    await removeEverything();
    const { organizationId } = scope;
    for (const subject of [
      `${organizationId}.audience.${scope.project.id}.${audience.id}`,
      `${organizationId}.chunk.${audience.id}.${audience.sha256}`,
    ])
      expect(await tombstonesOf(subject)).toMatchObject([{ deleted: true, version: 3 }]);
    const rows = await sql`
      select id from audiences where project_id = ${scope.project.id}
      union all
      select audience_id from audience_history where audience_id = ${audience.id}
      union all
      select project_id from fingerprint_keys where project_id = ${scope.project.id}`;
    expect(rows).toEqual([]);
    expect(await used()).toBe(0);
    await eventually(async () => (await sql`select from audience_members`).count === 0, {
      because: "the entries of the list are removed",
    });
  });
});

async function tombstonesOf(subject: string) {
  const rows = await management.sql<{ payload: string }[]>`
    select payload from outbox where subject = ${subject} and tombstone order by id`;
  return rows.map(({ payload }) => JSON.parse(payload));
}

describe("given a deleted environment", () => {
  it("keeps its flags in the other environments", async () => {
    const scope = await given.scope(["production", "staging"]);
    const created = await call("/api/v1/flags", "POST", {
      key: scope.serverKey,
      body: { key: "kept", name: "Kept" },
    });
    const { key: otherKey } = await given.key(scope.second, { user_id: scope.userId });
    await remove(environmentPath(scope));
    await removeEverything();
    const flag = await call(`/api/v1/flags/${created.body.id}`, "GET", { key: otherKey });
    expect(flag.body).toMatchObject({ key: "kept", environment_id: scope.second.id });
    const change = await call(`/api/v1/flags/${created.body.id}`, "PATCH", {
      key: otherKey,
      body: { enabled: true },
    });
    expect(change.status).toBe(200);
    await expectWholeHistory(management.sql);
  });

  it("stops a fill in progress", async () => {
    const scope = await scopeWithFlags(3 * removedAtOnce);
    const path = `/api/v1/projects/${scope.project.id}/environments`;
    const preview = await call(path, "POST", { body: { name: "preview" } });
    expect((await remove(`${path}/${preview.body.id}`)).status).toBe(204);
    await removeEverything();
    const fills = await management.sql`
      select from environment_fills where environment_id = ${preview.body.id}`;
    expect(fills).toHaveLength(0);
    expect(await rowsBelow(scope)).toMatchObject({ states: 3 * removedAtOnce });
  });
});

describe("deleting a parent during the creation of children", () => {
  it.each([
    { parent: "project", pathOf: projectPath },
    { parent: "organization", pathOf: organizationPath },
  ])("leaves nothing behind a deleted $parent", async ({ pathOf }) => {
    const scope = await given.scope();
    const { project, first, userId, organizationId } = scope;
    const posts = Array.from({ length: 10 }, (_, index) => [
      call("/api/v1/flags", "POST", {
        key: scope.serverKey,
        body: { key: `flag-${index}`, name: "f" },
      }),
      call(`/api/v1/projects/${project.id}/environments`, "POST", { body: { name: `e${index}` } }),
      call(`/api/v1/projects/${project.id}/environments/${first.id}/keys`, "POST", {
        body: { kind: "server", name: "k", user_id: userId },
      }),
      call(`/api/v1/organizations/${organizationId}/users`, "POST", {
        body: { email: `late${index}@example.com` },
      }),
    ]).flat();
    const [deleted, ...answers] = await Promise.all([remove(pathOf(scope)), ...posts]);
    expect(deleted.status).toBe(204);
    for (const { status } of answers) expect([201, 400, 401, 404]).toContain(status);
    await removeEverything();
    expect(await rowsBelow(scope)).toMatchObject({ flags: 0, states: 0, keys: 0 });
  });
});

describe("given a deleted user", () => {
  const audit = async (scope: Scope) =>
    (await call(`/api/v1/projects/${scope.project.id}/changes`)).body.changes;

  it("frees the e-mail address, and keeps it in the audit log", async () => {
    const scope = await given.scope();
    const { email } = (await call(userPath(scope))).body;
    await call("/api/v1/flags", "POST", { key: scope.serverKey, body: { key: "f", name: "f" } });
    await remove(userPath(scope));
    const users = `${organizationPath(scope)}/users`;
    expect((await call(users, "POST", { body: { email } })).status).toBe(201);
    const created = (await audit(scope)).find(
      ({ action }: { action: string }) => action === "created",
    );
    expect(created.actor).toMatchObject({ id: scope.userId, email });
  });

  it("has no e-mail address in the audit log after erasure", async () => {
    const scope = await given.scope();
    const { email } = (await call(userPath(scope))).body;
    await call("/api/v1/flags", "POST", { key: scope.serverKey, body: { key: "f", name: "f" } });
    await call(userPath(scope), "PATCH", { body: { name: "Ada" } });
    await remove(userPath(scope), "&erase=true");
    await removeEverything();
    const text = JSON.stringify(await audit(scope));
    expect(text).not.toContain(email);
    expect(text).not.toContain("Ada");
    expect(text).toContain(erasedEmail(scope.userId));
    expect(text).toContain(scope.userId);
    // The relay publishes the erasure to the webhook dispatchers.
    await eventually(
      () => management.sql`
        select from outbox
        where subject = 'user.erased' and payload::jsonb ->> 'user_id' = ${scope.userId}
          and sent_at is not null`,
      { until: ({ length }) => length === 1 },
    );
    const rows = await management.sql`select from users where email = ${email}`;
    expect(rows).toHaveLength(0);
  });

  it("is erased even if the organization is deleted shortly afterwards", async () => {
    const scope = await given.scope();
    const { email } = (await call(userPath(scope))).body;
    await call("/api/v1/flags", "POST", { key: scope.serverKey, body: { key: "f", name: "f" } });
    await remove(userPath(scope), "&erase=true");
    await remove(organizationPath(scope));
    await removeEverything();
    expect(JSON.stringify(await audit(scope))).not.toContain(email);
    const rows = await management.sql`select from users where id = ${scope.userId}`;
    expect(rows).toHaveLength(0);
  });

  it("can be erased after its deletion, and again", async () => {
    const scope = await given.scope();
    const { email } = (await call(userPath(scope))).body;
    await call("/api/v1/flags", "POST", { key: scope.serverKey, body: { key: "f", name: "f" } });
    await remove(userPath(scope));
    await removeEverything();
    expect((await remove(userPath(scope), "&erase=true")).status).toBe(204);
    await removeEverything();
    expect(JSON.stringify(await audit(scope))).not.toContain(email);
    expect((await remove(userPath(scope), "&erase=true")).status).toBe(204);
    const published = await management.sql`
      select from outbox where subject = 'user.erased' and payload::jsonb ->> 'user_id' = ${scope.userId}`;
    expect(published).toHaveLength(2);
    expect((await remove(userPath(scope))).status).toBe(404);
  });

  it("is erased from a change that was not committed before the deletion", async () => {
    const scope = await given.scope();
    const { email } = (await call(userPath(scope))).body;
    const isRead = Promise.withResolvers<void>();
    const isFree = Promise.withResolvers<void>();
    const change = management.sql.begin(async (tx) => {
      const actor = await readActor(tx, scope.userId);
      isRead.resolve();
      await isFree.promise;
      await tx`
        insert into changes (id, project_id, environment_id, action, cause, actor_id, actor_email, changed_at)
        values (${uuidv7()}, ${scope.project.id}, ${scope.first.id}, 'environment_changed', 'manual',
          ${actor.id}, ${actor.email}, now())`;
    });
    await isRead.promise;
    const deletion = remove(userPath(scope), "&erase=true").then(removeEverything);
    await eventually(async () => {
      const waiting = await management.sql`select from pg_locks where not granted`;
      return waiting.length > 0;
    });
    isFree.resolve();
    await Promise.all([change, deletion]);
    const rows = await management.sql<{ email: string }[]>`
      select actor_email as email from changes where actor_id = ${scope.userId}`;
    const emails = new Set(rows.map((row) => row.email));
    expect(emails).toEqual(new Set([erasedEmail(scope.userId)]));
    expect(emails).not.toContain(email);
  });
});
