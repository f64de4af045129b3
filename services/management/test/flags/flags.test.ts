import { afterAll, describe, expect, it } from "@jest/globals";
import { flagsOf } from "../flag-fixture.ts";
import { openManagement, seedProject } from "../management-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);
const key = project.serverKey;
const flags = flagsOf(management, project);

describe("creating a flag", () => {
  it("returns 201 with the flag, its location and its ETag", async () => {
    const answer = await management.call("/api/v1/flags", {
      method: "POST",
      key,
      body: { key: "checkout", name: "New checkout" },
    });
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`/api/v1/flags/${answer.body.id}`);
    expect(answer.headers.get("etag")).toBe('"1"');
    expect(answer.body).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      key: "checkout",
      name: "New checkout",
      description: "",
      type: "release",
      value_type: "boolean",
      tags: [],
      owner: null,
      archived_at: null,
      enabled: false,
      rollout_percentage: 100,
      targeting_rules: [],
      environment_id: project.environmentId,
      version: 1,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: answer.body.created_at,
      last_evaluated_at: null,
    });
  });

  it("sets the key's environment only", async () => {
    const flag = await flags.createFlag({ enabled: true });
    const other = await management.call(
      `/api/v1/flags/${flag.id}/environments/${project.otherEnvironmentId}`,
      { key },
    );
    expect(flag.enabled).toBe(true);
    expect(other.body.enabled).toBe(false);
  });

  it("publishes only flag.created, even if the flag is created enabled", async () => {
    const flag = await flags.createFlag({ enabled: true });
    expect(await flags.eventsOf(flag.id)).toMatchObject([
      {
        event: "flag.created",
        state: { enabled: true },
        triggered_by: { email: "ada@example.com" },
      },
    ]);
  });

  it("rejects a key that already exists in the project", async () => {
    const flag = await flags.createFlag();
    const again = await management.call("/api/v1/flags", {
      method: "POST",
      key,
      body: { key: flag.key, name: "Again" },
    });
    expect(again.status).toBe(409);
    expect(again.body.error.code).toBe("CONFLICT_001");
    expect(again.headers.get("location")).toBe(`/api/v1/flags/${flag.id}`);
  });

  it.each([
    [{ name: "No key" }, "/key is required"],
    [{ key: "a b", name: "Blank" }, "/key must be 1 to 128 letters"],
    [{ key: "ok" }, "/name is required"],
    [{ key: "ok", name: "x", enabld: true }, "/enabld is not a known field"],
    [{ key: "ok", name: "x", enabled: "yes" }, "/enabled must be boolean"],
    [{ key: "ok", name: "x", rollout_percentage: 101 }, "/rollout_percentage must be <= 100"],
    [{ key: "ok", name: "a\u0000b" }, "/name must be one line of text"],
    [{ key: "ok", name: "x", description: "\ud800" }, "/description must be text"],
  ])("rejects %j and names the field", async (body, message) => {
    const answer = await management.call("/api/v1/flags", { method: "POST", key, body });
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe("VALIDATION_001");
    expect(answer.body.error.message).toContain(message);
  });
});

describe("changing a flag", () => {
  it("increments the version and writes one history entry and one event for a toggle", async () => {
    const flag = await flags.createFlag();
    const answer = await flags.patch(`/api/v1/flags/${flag.id}`, { enabled: true });
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ enabled: true, version: 2 });
    expect(answer.headers.get("etag")).toBe('"2"');
    expect(await flags.eventsOf(flag.id)).toMatchObject([
      { event: "flag.created" },
      { event: "flag.toggled", state_before: { enabled: false }, state: { enabled: true } },
    ]);
    expect(await flags.historyOf(flag.id)).toMatchObject([
      { enabled: false, change_type: "manual" },
      { enabled: true, change_type: "manual", changed_by: project.userId },
    ]);
  });

  it("records nothing if no field differs", async () => {
    const flag = await flags.createFlag({ enabled: true });
    const answer = await flags.patch(`/api/v1/flags/${flag.id}`, {
      enabled: true,
      name: flag.name,
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual(flag);
    expect(await flags.eventsOf(flag.id)).toHaveLength(1);
  });

  it("publishes the events of several changed fields in order, a millisecond apart", async () => {
    const flag = await flags.createFlag();
    management.clock.now = () => new Date(flag.created_at);
    await flags.patch(`/api/v1/flags/${flag.id}`, {
      name: "B",
      enabled: true,
      rollout_percentage: 5,
    });
    management.clock.now = () => new Date();
    const events = await flags.eventsOf(flag.id);
    expect(events.map((event) => event.event)).toEqual([
      "flag.created",
      "flag.updated",
      "flag.toggled",
      "flag_state.updated",
    ]);
    const first = Date.parse(flag.created_at);
    expect(events.map((event) => Date.parse(event.timestamp) - first)).toEqual([0, 1, 2, 3]);
    expect(events[1]?.changes).toEqual({ name: { from: "A flag", to: "B" } });
  });

  it("accepts PUT with the same partial semantics", async () => {
    const flag = await flags.createFlag();
    const answer = await management.call(`/api/v1/flags/${flag.id}`, {
      method: "PUT",
      key,
      body: { name: "Put" },
    });
    expect(answer.body).toMatchObject({ name: "Put", key: flag.key });
  });

  it("changes nothing if `If-Match` names another version", async () => {
    const flag = await flags.createFlag();
    const rejected = await flags.patch(
      `/api/v1/flags/${flag.id}`,
      { enabled: true },
      { "if-match": '"7"' },
    );
    expect(rejected.status).toBe(412);
    expect(rejected.body.error.code).toBe("CONFLICT_003");
    const accepted = await flags.patch(
      `/api/v1/flags/${flag.id}`,
      { enabled: true },
      { "if-match": '"7", "1"' },
    );
    expect(accepted.status).toBe(200);
    const malformed = await flags.patch(`/api/v1/flags/${flag.id}`, {}, { "if-match": "2" });
    expect(malformed).toMatchObject({ status: 400, body: { error: { code: "VALIDATION_001" } } });
  });

  it("returns rules with their members in the order of the schema from every route", async () => {
    const sent = {
      rollout_percentage: 5,
      value: true,
      conditions: [{ value: ["a"], operator: "in", attribute: "plan" }],
      name: "Plan",
      id: "1",
    };
    const ordered = JSON.stringify([
      {
        id: "1",
        name: "Plan",
        conditions: [{ attribute: "plan", operator: "in", value: ["a"] }],
        value: true,
        rollout_percentage: 5,
      },
    ]);
    const flag = await flags.createFlag({ targeting_rules: [sent] });
    const path = `/api/v1/flags/${flag.id}`;
    const statePath = `${path}/environments/${project.environmentId}`;
    await flags.patch(path, { targeting_rules: [] });
    const patched = await flags.patch(statePath, { targeting_rules: [sent] });
    const read = async (at: string) => (await management.call(at, { key })).body;
    const listed = await read(`/api/v1/flags?key=${flag.key}`);
    const { history } = await read(`${statePath}/history`);
    const { changes } = await read(
      `/api/v1/projects/${project.projectId}/changes?flag_id=${flag.id}`,
    );
    const states = [flag, patched.body, await read(path), await read(statePath), listed.flags[0]];
    states.push(history[0], history[2], changes[0].after, changes[1].before, changes[2].after);
    states.push((await flags.eventsOf(flag.id)).at(-1)?.state);
    for (const state of states) expect(JSON.stringify(state.targeting_rules)).toBe(ordered);
  });

  it("loses none of many concurrent changes", async () => {
    const flag = await flags.createFlag();
    const percentages = Array.from({ length: 40 }, (_, index) => index);
    const answers = await Promise.all(
      percentages.map((rollout_percentage) =>
        flags.patch(`/api/v1/flags/${flag.id}`, { rollout_percentage }),
      ),
    );
    const versions = answers.map((answer) => answer.body.version).sort((a, b) => a - b);
    expect(versions).toEqual(percentages.map((index) => index + 2));
  });

  it("changes one environment's state at its own path", async () => {
    const flag = await flags.createFlag();
    const path = `/api/v1/flags/${flag.id}/environments/${project.otherEnvironmentId}`;
    const answer = await flags.patch(path, { enabled: true });
    expect(answer.body).toMatchObject({
      flag_id: flag.id,
      environment_id: project.otherEnvironmentId,
      enabled: true,
      version: 2,
    });
    const own = await management.call(`/api/v1/flags/${flag.id}`, { key });
    expect(own.body).toMatchObject({ enabled: false, version: 2 });
    const [, toggled] = await flags.eventsOf(flag.id);
    expect(toggled).toMatchObject({ environment: { name: "staging" } });
  });
});

describe("reading a flag", () => {
  const read = (path: string, ifNoneMatch: string, reader = key) =>
    management.call(path, { key: reader, headers: { "if-none-match": ifNoneMatch } });

  it("returns 304 for the ETag of the last read, and accepts that ETag as `If-Match`", async () => {
    const flag = await flags.createFlag();
    const path = `/api/v1/flags/${flag.id}`;
    const etag = (await management.call(path, { key })).headers.get("etag") as string;
    expect(etag).toMatch(/^"1-/);
    for (const ifNoneMatch of [etag, `"x", W/${etag}`, "*"]) {
      const again = await read(path, ifNoneMatch);
      expect(again).toMatchObject({ status: 304, body: undefined });
      expect(again.headers.get("etag")).toBe(etag);
      expect(again.headers.get("cache-control")).toBe("private, no-cache");
      expect(again.headers.get("vary")).toBe("Authorization, Cookie, Halyard-Environment");
    }
    expect((await read(path, '"1"')).status).toBe(200);
    expect((await flags.patch(path, { enabled: true }, { "if-match": etag })).status).toBe(200);
    expect((await flags.patch(path, { enabled: false }, { "if-match": etag })).status).toBe(412);
    expect((await read(path, etag)).status).toBe(200);
  });

  it("returns another ETag in another environment at the same version", async () => {
    const flag = await flags.createFlag();
    const path = `/api/v1/flags/${flag.id}`;
    const etag = (await management.call(path, { key })).headers.get("etag") as string;
    const issued = await management.call(
      `/api/v1/projects/${project.projectId}/environments/${project.otherEnvironmentId}/keys`,
      { method: "POST", key, body: { kind: "server", name: "x", user_id: project.userId } },
    );
    expect(issued.headers.get("cache-control")).toBe("no-store");
    const inOther = await read(path, etag, issued.body.key);
    expect(inOther).toMatchObject({ status: 200, body: { version: 1 } });
  });
});

describe("an environment_only key", () => {
  it("is rejected in another environment of its project, and gets 404 outside the project", async () => {
    const flag = await flags.createFlag();
    const at = (environmentId: string) =>
      management.call(`/api/v1/flags/${flag.id}/environments/${environmentId}`, {
        key: project.environmentOnlyKey,
      });
    expect((await at(project.environmentId)).status).toBe(200);
    expect((await at(project.otherEnvironmentId)).status).toBe(403);
    expect((await at(project.projectId)).status).toBe(404);
  });

  it("cannot delete a flag, and cannot change fields that all environments share", async () => {
    const flag = await flags.createFlag({ description: "before" });
    const path = `/api/v1/flags/${flag.id}`;
    const bound = project.environmentOnlyKey;
    for (const [method, body] of [
      ["DELETE", undefined],
      ["PATCH", { name: "Another" }],
      ["PUT", { enabled: true, description: "after" }],
      ["PATCH", { type: "experiment" }],
    ] as const) {
      const rejected = await management.call(path, { method, key: bound, body });
      expect([method, body, rejected.status, rejected.body.error.code]).toEqual([
        method,
        body,
        403,
        "AUTH_002",
      ]);
    }
    expect((await management.call(path, { key })).body).toEqual(flag);
  });

  it("creates flags, and changes the state in its own environment", async () => {
    const bound = project.environmentOnlyKey;
    const body = { key: flags.freshKey(), name: "A flag", enabled: true };
    const created = await management.call("/api/v1/flags", { method: "POST", key: bound, body });
    expect(created.status).toBe(201);
    const path = `/api/v1/flags/${created.body.id}`;
    const inOther = `${path}/environments/${project.otherEnvironmentId}`;
    expect((await management.call(inOther, { key })).body.enabled).toBe(false);
    const changed = await management.call(path, {
      method: "PATCH",
      key: bound,
      body: { name: "A flag", description: "", rollout_percentage: 20 },
    });
    expect(changed).toMatchObject({ status: 200, body: { rollout_percentage: 20 } });
    expect((await management.call(inOther, { key })).body.rollout_percentage).toBe(100);
  });
});

describe("deleting a flag", () => {
  it("deletes nothing if `If-Match` names another version", async () => {
    const flag = await flags.createFlag();
    const path = `/api/v1/flags/${flag.id}`;
    const remove = (version: string) =>
      management.call(path, { method: "DELETE", key, headers: { "if-match": version } });
    const rejected = await remove('"7"');
    expect(rejected).toMatchObject({ status: 412, body: { error: { code: "CONFLICT_003" } } });
    expect((await management.call(path, { key })).status).toBe(200);
    expect((await remove('"1"')).status).toBe(204);
  });

  it("removes it with its states, and frees its key", async () => {
    const flag = await flags.createFlag();
    const answer = await management.call(`/api/v1/flags/${flag.id}`, { method: "DELETE", key });
    expect(answer.status).toBe(204);
    expect((await management.call(`/api/v1/flags/${flag.id}`, { key })).status).toBe(404);
    expect((await flags.eventsOf(flag.id)).map((event) => event.event)).toEqual([
      "flag.created",
      "flag.deleted",
    ]);
    const again = await flags.createFlag({ key: flag.key });
    expect(again.id).not.toBe(flag.id);
  });
});

describe("listing flags", () => {
  it("is paginated in the order of their keys", async () => {
    const all = (await management.call("/api/v1/flags", { key })).body.flags.map(
      (flag: { key: string }) => flag.key,
    );
    const paged: string[] = [];
    let cursor: string | null = null;
    do {
      const suffix: string = cursor === null ? "" : `&cursor=${cursor}`;
      const { body } = await management.call(`/api/v1/flags?limit=3${suffix}`, { key });
      paged.push(...body.flags.map((flag: { key: string }) => flag.key));
      cursor = body.next_cursor;
    } while (cursor !== null);
    expect(paged).toEqual(all);
    expect(all).toEqual([...all].sort());
  });

  it("finds a flag by its key, and nothing for an unknown or invalid key", async () => {
    const flag = await flags.createFlag();
    const list = async (query: string) =>
      (await management.call(`/api/v1/flags?${query}`, { key })).body;
    expect(await list(`key=${flag.key}`)).toEqual({ flags: [flag] });
    expect(await list(`key=${flag.key}&limit=1`)).toEqual({ flags: [flag], next_cursor: null });
    for (const unknown of ["no-such-flag", "a%20b", "%00", "", "k".repeat(1_000)])
      expect(await list(`key=${unknown}`)).toEqual({ flags: [] });
    expect(await list("key=%00&limit=5")).toEqual({ flags: [], next_cursor: null });
  });

  it("rejects an invalid cursor", async () => {
    const answer = await management.call("/api/v1/flags?limit=3&cursor=%20", { key });
    expect(answer.status).toBe(400);
  });
});

describe("Idempotency-Key", () => {
  it("returns the first response again, and creates one flag", async () => {
    const request = {
      method: "POST",
      key,
      body: { key: flags.freshKey(), name: "Once" },
      headers: { "idempotency-key": "first" },
    };
    const answers = await Promise.all(
      [1, 2, 3].map(() => management.call("/api/v1/flags", request)),
    );
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.body.id)).size).toBe(1);
  });
});
