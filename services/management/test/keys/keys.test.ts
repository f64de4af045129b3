import { routes } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, operatorToken, signInSettings } from "../management-fixture.ts";
import { entriesOf, readLocationOf, tenancyOf } from "../tenancy-fixture.ts";

const management = await openManagement({ signIn: signInSettings() });
afterAll(() => management.close());
const given = tenancyOf(management);

type Environment = { id: string; project_id: string };

const unknownId = "01890000-0000-7000-8000-000000000000";
const unknownKeyId = "aaaaaaaaaaaaaaaa";
const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

const pathOf = (environment: Environment) =>
  `/api/v1/projects/${environment.project_id}/environments/${environment.id}/keys`;

const post = (path: string, key: string, body?: unknown, headers: Record<string, string> = {}) =>
  management.call(path, { method: "POST", key, body, headers });

const issue = (environment: Environment, key: string, body: Record<string, unknown>) =>
  post(pathOf(environment), key, { kind: "server", name: "CI", ...body });

const read = (environment: Environment, key: string, id: string) =>
  management.call(`${pathOf(environment)}/${id}`, { key });

const revoke = (environment: Environment, key: string, id: string) =>
  management.call(`${pathOf(environment)}/${id}`, { method: "DELETE", key });

const list = async (environment: Environment) =>
  (await management.call(pathOf(environment), { key: operatorToken })).body.keys;

/** Returns the status of a request with the key: 200 if the key works, 401 otherwise. */
const statusWith = async (key: string) => (await management.call("/api/v1/flags", { key })).status;

describe("issuing a key", () => {
  it("returns the record, and the key only in this response", async () => {
    const { first, userId, serverKey } = await given.scope();
    const answer = await issue(first, operatorToken, { user_id: userId });
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`${pathOf(first)}/${answer.body.id}`);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const { key, ...record } = answer.body;
    expect(key).toMatch(/^hs_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$/);
    expect(record).toEqual({
      id: key.split("_")[1],
      kind: "server",
      name: "CI",
      environment_id: first.id,
      user_id: userId,
      scope: "write",
      environment_only: false,
      issued_by: null,
      created_at: instant,
      expires_at: null,
      revoked_at: null,
      last_used_at: null,
    });
    expect((await list(first))[0]).toEqual(record);
    for (const reader of [operatorToken, serverKey])
      expect((await readLocationOf(management, answer, reader)).body).toEqual(record);
  });

  it("limits a reader key to its environment, and gives it nothing of management", async () => {
    const { first, userId, project } = await given.scope();
    const issued = await issue(first, operatorToken, { kind: "reader", user_id: userId });
    expect(issued.body).toMatchObject({ kind: "reader", environment_only: true });
    const { key, id } = issued.body;
    expect(key).toMatch(/^hr_[a-z2-7]{16}_[A-Za-z0-9_-]{43}$/);
    const get = async (path: string) => {
      const { status, body } = await management.call(path, { key });
      return [status, body.error?.code];
    };
    for (const path of ["/api/v1/operators", "/api/v1/plans"])
      expect(await get(path)).toEqual([200, undefined]);
    const rejecting = routes.filter((route) => {
      // The routes of people exist only where people can sign in.
      const { service, tag, access } = route;
      return service === "management" && tag !== "People" && !/any_key|stream_token/.test(access);
    });
    for (const { method, path } of rejecting) {
      const ofProject = path.replace(":projectId", project.id).replaceAll(/:\w+/g, first.id);
      const answer = await management.call(ofProject, { key, method });
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 403, "AUTH_002"]);
    }
    const { body: rotated } = await post(`${pathOf(first)}/${id}/rotate`, operatorToken, {});
    expect(rotated).toMatchObject({ kind: "reader", environment_only: true });
  });

  it("makes the key work", async () => {
    const { first, userId } = await given.scope();
    const { body } = await issue(first, operatorToken, { user_id: userId });
    await eventually(async () => (await statusWith(body.key)) === 200);
  });

  it("does not store the secret", async () => {
    const { first, userId, organizationId } = await given.scope();
    const headers = { "idempotency-key": "secret" };
    const body = { kind: "client", name: "CI", user_id: userId };
    const issued = (await post(pathOf(first), operatorToken, body, headers)).body;
    const secret = issued.key.slice(20);
    const [entry] = await entriesOf(management, `${organizationId}.key.${issued.id}`);
    expect(entry).toMatchObject({ key_kind: "client", user_id: userId, version: 1 });
    const tables = await management.sql`
      select to_jsonb(api_keys)::text as content from api_keys
      union all select to_jsonb(outbox)::text from outbox
      union all select to_jsonb(changes)::text from changes
      union all select encode(answer, 'escape')
        from idempotency_keys`;
    expect(tables.length).toBeGreaterThan(3);
    expect(tables.filter(({ content }) => content.includes(secret))).toEqual([]);
  });

  it("accepts an expiry time in the future with any offset, and enforces it", async () => {
    const { first, userId } = await given.scope();
    const end = Date.now() + 60 * 60 * 1000;
    const expires_at = `${new Date(end + 2 * 60 * 60 * 1000).toISOString().slice(0, -1)}+02:00`;
    const { body } = await issue(first, operatorToken, { user_id: userId, expires_at });
    expect(body.expires_at).toBe(new Date(end).toISOString());
    await eventually(() => management.directory.find(body.id, Date.now()) !== undefined);
    expect(management.directory.find(body.id, end)).toBeUndefined();
  });

  it.each([
    [{ expires_at: "2020-01-01T00:00:00Z" }, "/expires_at must be in the future"],
    [{ expires_at: "9999-12-31T23:59:59-10:00" }, "/expires_at must be before the year 10000"],
    [{ expires_at: "tomorrow" }, "/expires_at must be an ISO 8601 instant"],
    [{ kind: "admin" }, '/kind must be one of "client", "reader", "server"'],
    [{ name: "a\nb" }, "/name must be one line of text"],
    [{ user_id: "nobody" }, "/user_id must be a UUID"],
    [{ user_id: unknownId }, "/user_id must be a user of the project's organization"],
    [{ environment_only: "yes" }, "/environment_only must be boolean"],
    [{ key: "hs_mine" }, "/key is not a known field"],
  ])("rejects %j", async (body, message) => {
    const { first, userId } = await given.scope();
    const answer = await issue(first, operatorToken, { user_id: userId, ...body });
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe("VALIDATION_001");
    expect(answer.body.error.message).toContain(message);
  });

  it("needs a user if the operator issues it", async () => {
    const { first } = await given.scope();
    const answer = await issue(first, operatorToken, {});
    expect(answer.status).toBe(400);
    expect(answer.body.error).toMatchObject({
      code: "VALIDATION_001",
      message: "/user_id is required",
    });
  });

  it("rejects a user of another organization like an unknown user", async () => {
    const { first } = await given.scope();
    const other = await given.scope();
    const answer = await issue(first, operatorToken, { user_id: other.userId });
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toContain("/user_id must be a user of the project's");
  });
});

/** Inserts keys that the test does not use: live, revoked or expired ones, an hour old. */
const seedKeys = (
  environment: Environment,
  userId: string,
  ended: { count: number; revokedAt?: Date; expiresAt?: Date },
) => management.sql`
  insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id, environment_only,
    version, created_at, expires_at, revoked_at)
  select translate(substr(replace(gen_random_uuid()::text, '-', ''), 1, 16), '0189', 'ghij'), repeat('0', 64),
    'client', 'Seeded ' || number, ${environment.id}, ${userId}, false, 1,
    date_trunc('milliseconds', now()) - interval '1 hour', ${ended.expiresAt ?? null},
    ${ended.revokedAt ?? null}
  from generate_series(1, ${ended.count}) as number`;

describe("given an environment with almost 1,000 live keys", () => {
  it("issues only as many as are missing to concurrent requests, and one more after a revocation", async () => {
    const { first, userId, serverKey } = await given.scope();
    const longAgo = new Date(Date.now() - 60_000);
    await seedKeys(first, userId, { count: 997 });
    await seedKeys(first, userId, { count: 5, revokedAt: longAgo });
    await seedKeys(first, userId, { count: 5, expiresAt: longAgo });
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => issue(first, serverKey, { user_id: userId })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409, 409, 409]);
    const rejected = answers.find(({ status }) => status === 409);
    expect(rejected?.body.error.code).toBe("CONFLICT_001");
    const issued = answers.find(({ status }) => status === 201);
    expect((await revoke(first, serverKey, issued?.body.id)).status).toBe(204);
    expect((await issue(first, serverKey, { user_id: userId })).status).toBe(201);
  });
});

describe("listing keys", () => {
  type Listed = { keys: { id: string; created_at: string }[]; next_cursor?: string | null };
  const page = async (environment: Environment, query: string) =>
    (await management.call(`${pathOf(environment)}?${query}`, { key: operatorToken }))
      .body as Listed;
  const idsOf = ({ keys }: Listed) => keys.map(({ id }) => id);

  it("returns pages of the newest keys first, together the same as the list without a limit", async () => {
    const { first, userId } = await given.scope();
    // All of them have the same creation time, so their order depends on their ids.
    await seedKeys(first, userId, { count: 1_200, revokedAt: new Date() });
    const all: Listed = { keys: await list(first) };
    expect(all.keys).toHaveLength(1_201);
    expect(all.keys.map(({ created_at }) => created_at)).toEqual(
      all.keys
        .map(({ created_at }) => created_at)
        .toSorted()
        .toReversed(),
    );
    const one = await page(first, "limit=700");
    const two = await page(first, `limit=700&cursor=${one.next_cursor}`);
    expect([...idsOf(one), ...idsOf(two)]).toEqual(idsOf(all));
    expect(one.keys).toHaveLength(700);
    expect(two.next_cursor).toBeNull();
    const after = await page(first, `cursor=${one.next_cursor}`);
    expect(after).toEqual({ keys: two.keys });
  });

  it("contains keys that ended more than 30 days ago only with a limit", async () => {
    const { first, userId } = await given.scope();
    const daysAgo = (days: number) => new Date(Date.now() - days * 24 * 60 * 60 * 1_000);
    await seedKeys(first, userId, { count: 1, revokedAt: daysAgo(29) });
    await seedKeys(first, userId, { count: 1, expiresAt: daysAgo(31) });
    await seedKeys(first, userId, { count: 1, revokedAt: daysAgo(31), expiresAt: daysAgo(1) });
    expect(await list(first)).toHaveLength(2);
    expect((await page(first, "limit=10")).keys).toHaveLength(4);
  });

  it.each([
    ["limit=0", "/limit must be >= 1"],
    ["limit=1001", "/limit must be <= 1000"],
    ["cursor=YQ", "/cursor must be the `next_cursor` of an earlier answer"],
    [
      `cursor=${Buffer.from("999999999999999 aaaaaaaaaaaaaaaa").toString("base64url")}`,
      "/cursor must be the `next_cursor` of an earlier answer",
    ],
  ])("rejects %s", async (query, message) => {
    const { first } = await given.scope();
    const answer = await management.call(`${pathOf(first)}?${query}`, { key: operatorToken });
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toContain(message);
  });
});

describe("keys of an unknown or inaccessible environment", () => {
  it("are not found under another environment of the same project", async () => {
    const { first, second, userId, serverKey } = await given.scope();
    const { id } = await given.key(first, { user_id: userId });
    expect((await read(second, serverKey, id)).status).toBe(404);
    expect((await read(first, serverKey, unknownKeyId)).status).toBe(404);
    expect((await revoke(second, serverKey, id)).status).toBe(404);
    expect((await post(`${pathOf(second)}/${id}/rotate`, serverKey)).status).toBe(404);
    expect((await revoke(first, serverKey, unknownKeyId)).status).toBe(404);
    expect((await revoke(first, serverKey, "NOT-A-KEY-ID")).status).toBe(404);
  });
});

describe("a server key", () => {
  async function keysOfTwoUsers() {
    const scope = await given.scope();
    const { first, second, userId } = scope;
    const { id: otherUserId } = await given.user(scope.organizationId);
    const bound = await given.key(first, { user_id: userId, environment_only: true });
    return { ...scope, otherUserId, bound: bound.key, first, second };
  }

  it("issues keys for its own user only, in every environment of the project", async () => {
    const { first, second, serverKey, userId, otherUserId } = await keysOfTwoUsers();
    expect((await issue(first, serverKey, { user_id: userId })).status).toBe(201);
    expect((await issue(second, serverKey, { user_id: userId })).status).toBe(201);
    for (const user_id of [otherUserId, unknownId]) {
      const rejected = await issue(first, serverKey, { user_id });
      expect(rejected.status).toBe(403);
      expect(rejected.body.error.code).toBe("AUTH_002");
    }
  });

  it("issues a key for its own user if the request names none", async () => {
    const { first, bound, userId } = await keysOfTwoUsers();
    const issued = await issue(first, bound, { environment_only: true });
    expect(issued.status).toBe(201);
    expect(issued.body.user_id).toBe(userId);
  });

  it("rotates and revokes its own user's keys only, and reads all keys", async () => {
    const { first, serverKey, userId, otherUserId } = await keysOfTwoUsers();
    const own = await given.key(first, { user_id: userId });
    const others = await given.key(first, { user_id: otherUserId });
    for (const [id, statuses] of [
      [own.id, [201, 204]],
      [others.id, [403, 403]],
    ] as const) {
      const rotated = await post(`${pathOf(first)}/${id}/rotate`, serverKey, {
        overlap_seconds: 60,
      });
      const revoked = await revoke(first, serverKey, id);
      expect([rotated.status, revoked.status]).toEqual(statuses);
    }
    const seen = await management.call(pathOf(first), { key: serverKey });
    expect(seen.body.keys.map((key: { id: string }) => key.id)).toContain(others.id);
    expect((await read(first, serverKey, others.id)).status).toBe(200);
  });

  it("manages only environment_only keys of its own environment if it is environment_only", async () => {
    const { first, second, bound, userId, otherUserId } = await keysOfTwoUsers();
    const like = { user_id: userId, environment_only: true };
    expect((await issue(first, bound, like)).status).toBe(201);
    expect((await issue(second, bound, like)).status).toBe(403);
    expect((await management.call(pathOf(first), { key: bound })).status).toBe(200);
    expect((await management.call(pathOf(second), { key: bound })).status).toBe(403);
    const wide = await given.key(first, { user_id: otherUserId });
    const inSecond = await given.key(second, { user_id: userId });
    expect((await read(first, bound, wide.id)).status).toBe(200);
    expect((await read(second, bound, inSecond.id)).status).toBe(403);
  });

  it("revokes itself", async () => {
    const { first, serverKey } = await given.scope();
    expect((await revoke(first, serverKey, serverKey.split("_")[1] ?? "")).status).toBe(204);
    await eventually(async () => (await statusWith(serverKey)) === 401);
  });

  it("is required: a client key has no access to keys", async () => {
    const { first, userId } = await given.scope();
    const client = await given.key(first, { user_id: userId, kind: "client" });
    expect((await management.call(pathOf(first), { key: client.key })).status).toBe(403);
    expect((await read(first, client.key, client.id)).status).toBe(403);
    expect((await issue(first, client.key, { user_id: userId })).status).toBe(403);
    expect((await revoke(first, client.key, client.id)).status).toBe(403);
  });
});

describe("rotating a key", () => {
  const rotate = (environment: Environment, id: string, body?: unknown, headers = {}) =>
    post(`${pathOf(environment)}/${id}/rotate`, operatorToken, body, headers);

  it("returns a new key with the old key's fields and revokes the old key immediately", async () => {
    const { first, userId, organizationId } = await given.scope();
    const old = await given.key(first, { user_id: userId, environment_only: true, name: "Deploy" });
    const answer = await rotate(first, old.id);
    expect(answer.status).toBe(201);
    expect(answer.headers.get("location")).toBe(`${pathOf(first)}/${answer.body.id}`);
    expect(answer.headers.get("cache-control")).toBe("no-store");
    const { key: _, ...record } = answer.body;
    expect((await readLocationOf(management, answer, operatorToken)).body).toEqual(record);
    expect(answer.body).toEqual({
      ...old,
      id: answer.body.key.split("_")[1],
      key: expect.stringMatching(/^hs_/),
      created_at: instant,
    });
    expect(answer.body.id).not.toBe(old.id);
    await eventually(async () => (await statusWith(old.key)) === 401);
    expect(await statusWith(answer.body.key)).toBe(200);
    expect((await list(first)).find((key: { id: string }) => key.id === old.id)).toMatchObject({
      revoked_at: answer.body.created_at,
      expires_at: null,
    });
    expect(await entriesOf(management, `${organizationId}.key.${old.id}`)).toMatchObject([
      { version: 1, kind: "key" },
      { version: 2, deleted: true },
    ]);
  });

  it("disables the old key", async () => {
    const { first, userId } = await given.scope();
    const old = await given.key(first, { user_id: userId });
    expect((await rotate(first, old.id)).status).toBe(201);
    await eventually(async () => (await statusWith(old.key)) === 401);
  });

  it("keeps both keys valid during the overlap, and only the new key afterwards", async () => {
    const { first, userId, organizationId } = await given.scope();
    const old = await given.key(first, { user_id: userId });
    const { body } = await rotate(first, old.id, { overlap_seconds: 3600 });
    const end = Date.parse(body.created_at) + 3600_000;
    await eventually(async () => (await statusWith(body.key)) === 200);
    expect(await statusWith(old.key)).toBe(200);
    expect(await entriesOf(management, `${organizationId}.key.${old.id}`)).toMatchObject([
      { version: 1, expires_at: null },
      { version: 2, expires_at: new Date(end).toISOString() },
    ]);
    management.clock.now = () => new Date(end);
    try {
      expect(await statusWith(old.key)).toBe(401);
      expect(await statusWith(body.key)).toBe(200);
    } finally {
      management.clock.now = () => new Date();
    }
  });

  it.each([
    [{ overlap_seconds: -1 }, "/overlap_seconds must be >= 0"],
    [{ overlap_seconds: 604_801 }, "/overlap_seconds must be <= 604800"],
    [{ overlap_seconds: 1.5 }, "/overlap_seconds must be integer"],
    [{ overlap: 1 }, "/overlap is not a known field"],
  ])("rejects %j", async (body, message) => {
    const { first, userId } = await given.scope();
    const { id } = await given.key(first, { user_id: userId });
    const answer = await rotate(first, id, body);
    expect(answer.status).toBe(400);
    expect(answer.body.error.message).toContain(message);
  });

  it("happens once for two concurrent requests", async () => {
    const { first, userId } = await given.scope();
    const { id } = await given.key(first, { user_id: userId });
    const answers = await Promise.all([rotate(first, id), rotate(first, id)]);
    expect(answers.map((answer) => answer.status).sort()).toEqual([201, 409]);
  });

  it("returns the first response again for the same Idempotency-Key", async () => {
    const { first, userId } = await given.scope();
    const { id } = await given.key(first, { user_id: userId });
    const headers = { "idempotency-key": "rotation" };
    const [one, two] = await Promise.all([
      rotate(first, id, undefined, headers),
      rotate(first, id, undefined, headers),
    ]);
    expect(two).toMatchObject({ status: 201, body: one.body });
    const later = await rotate(first, id, undefined, headers);
    expect(later.body).toEqual(one.body);
  });
});

describe("revoking a key", () => {
  it("disables the key", async () => {
    const { first, userId } = await given.scope();
    const { id, key } = await given.key(first, { user_id: userId });
    expect((await revoke(first, operatorToken, id)).status).toBe(204);
    await eventually(async () => (await statusWith(key)) === 401);
  });

  it("is idempotent and keeps the record", async () => {
    const { first, userId, organizationId } = await given.scope();
    const { id } = await given.key(first, { user_id: userId });
    const answer = await revoke(first, operatorToken, id);
    expect(answer).toMatchObject({ status: 204, body: undefined });
    expect((await revoke(first, operatorToken, id)).status).toBe(204);
    expect(await entriesOf(management, `${organizationId}.key.${id}`)).toMatchObject([
      { version: 1 },
      { version: 2, deleted: true },
    ]);
    const record = (await list(first)).find((each: { id: string }) => each.id === id);
    expect(record.revoked_at).toEqual(instant);
    const { revoked_at, expires_at } = record;
    expect((await read(first, operatorToken, id)).body).toMatchObject({ revoked_at, expires_at });
  });

  it("happens once for concurrent requests", async () => {
    const { first, userId, organizationId } = await given.scope();
    const { id } = await given.key(first, { user_id: userId });
    const answers = await Promise.all([1, 2, 3, 4].map(() => revoke(first, operatorToken, id)));
    expect(answers.map((answer) => answer.status)).toEqual([204, 204, 204, 204]);
    expect(await entriesOf(management, `${organizationId}.key.${id}`)).toHaveLength(2);
  });
});

describe("Idempotency-Key", () => {
  it("returns the same key again, and rejects another body", async () => {
    const { first, userId, serverKey } = await given.scope();
    const headers = { "idempotency-key": "issue" };
    const body = { kind: "client", name: "Once", user_id: userId };
    const answers = await Promise.all(
      [1, 2, 3].map(() => post(pathOf(first), serverKey, body, headers)),
    );
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201]);
    expect(new Set(answers.map((answer) => answer.body.key)).size).toBe(1);
    expect(answers[0]?.headers.get("location")).toBe(answers[2]?.headers.get("location"));
    const names = (await list(first)).map((key: { name: string }) => key.name);
    expect(names.filter((name: string) => name === "Once")).toHaveLength(1);

    const other = await post(pathOf(first), serverKey, { ...body, name: "Other" }, headers);
    expect(other.status).toBe(409);
    expect(other.body.error.code).toBe("CONFLICT_001");
  });

  it("is separate for each caller", async () => {
    const { first, userId, serverKey } = await given.scope();
    const headers = { "idempotency-key": "shared" };
    const body = { kind: "client", name: "Own", user_id: userId };
    const one = await post(pathOf(first), serverKey, body, headers);
    const two = await post(pathOf(first), operatorToken, body, headers);
    expect([one.status, two.status]).toEqual([201, 201]);
    expect(two.body.key).not.toBe(one.body.key);
  });
});

describe("the audit log", () => {
  it("contains the authors of issuing, rotating and revoking, but no secret", async () => {
    const { first, userId, serverKey } = await given.scope();
    const own = (await issue(first, serverKey, { user_id: userId })).body;
    const path = `${pathOf(first)}/${own.id}/rotate`;
    const next = (await post(path, serverKey, { overlap_seconds: 60 })).body;
    await revoke(first, operatorToken, next.id);
    const changes = await management.sql`
      select key_id, action, actor_id, state_before, state_after from changes
      where key_id in (${own.id}, ${next.id}) order by sequence`;
    const operatorId = "00000000-0000-0000-0000-000000000000";
    expect([...changes]).toMatchObject([
      { key_id: own.id, action: "key_issued", actor_id: userId, state_before: null },
      {
        key_id: own.id,
        action: "key_rotated",
        state_before: { expires_at: null },
        state_after: { replaced_by: next.id },
      },
      { key_id: next.id, action: "key_revoked", actor_id: operatorId },
    ]);
    const fields = ["environment_only", "expires_at", "kind", "name", "revoked_at", "user_id"];
    for (const { state_after } of changes) {
      const { replaced_by: _, ...after } = state_after;
      expect(Object.keys(after).sort()).toEqual(fields);
    }
  });
});
