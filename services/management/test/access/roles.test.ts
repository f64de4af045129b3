import { isProblem } from "@halyard/http";
import type { SessionCookie } from "@halyard/people";
import { eventually, openEventStream } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { beginSession, endSessions } from "../../src/people/sessions.ts";
import {
  type Management,
  openManagement,
  operatorToken,
  publicUrl,
} from "../management-fixture.ts";
import { peopleOf } from "../people/people-fixture.ts";

/** Checks of roles inside handlers, over HTTP with real sessions. The matrix of routes is in `libs/people`. */
let management: Management;
let given: ReturnType<typeof peopleOf>;
beforeAll(async () => {
  management = await openManagement();
  given = peopleOf(management);
});
afterAll(() => management.close());

type Scope = Awaited<ReturnType<typeof given.scope>>;

/** Begins a session of a person. */
async function begin(personId: string): Promise<SessionCookie> {
  const begun = await management.writer((write) =>
    beginSession(
      { ...write, now: () => new Date(), newId: uuidv7 },
      { personId, via: "passkey", groups: [], address: "192.0.2.1", userAgent: "a browser" },
    ),
  );
  if (isProblem(begun)) throw new Error(begun.message);
  return begun.cookie;
}

const cookieName = "halyard-session-8080";
const cookieOf = ({ sessionId, secret }: SessionCookie, name = cookieName) =>
  `${name}=${sessionId}.${secret}`;

/** Signs in a new user with a role, and returns a function that sends requests by this session. */
async function signedIn(scope: Scope, role: string, where: object) {
  const user = await given.user(scope.organizationId);
  const personId = await given.person(user.id);
  const cookie = await begin(personId);
  const granted = await given.grant(scope.organizationId, {
    ...{ subject: { user_id: user.id }, role, scope: where },
  });
  if (granted.status !== 201) throw new Error(JSON.stringify(granted.body));
  await eventually(
    () => {
      const session = management.people.session(cookie, Date.now());
      return session && management.people.memberOf(session, scope.organizationId)?.grants.length;
    },
    { because: "the directory contains the session and the role" },
  );
  const headers = {
    cookie: cookieOf(cookie),
    origin: publicUrl,
    "halyard-environment": scope.first.id as string,
  };
  return {
    userId: user.id as string,
    personId,
    headers,
    grantId: granted.body.id as string,
    send: (method: string, path: string, body?: unknown, more: Record<string, string> = {}) =>
      management.call(path, { method, body, headers: { ...headers, ...more } }),
  };
}

const flag = (fields: object = {}) => ({ key: `flag-${uuidv7()}`, name: "A flag", ...fields });

describe("given an editor of one environment", () => {
  async function givenEditor() {
    const scope = await given.scope();
    const where = { project: scope.project.id, environments: [scope.second.id] };
    const editor = await signedIn(scope, "editor", where);
    const inSecond = { "halyard-environment": scope.second.id };
    return { scope, editor, inSecond };
  }

  it("creates flags that are off everywhere, and flags that are on in that environment", async () => {
    const { editor, inSecond } = await givenEditor();
    const create = (fields: object, headers = {}) =>
      editor.send("POST", "/api/v1/flags", flag(fields), headers);
    expect((await create({})).status).toBe(201);
    expect((await create({ enabled: true }, inSecond)).status).toBe(201);
    const rejected = await create({ enabled: true });
    expect(rejected.status).toBe(403);
    expect(rejected.body.error.message).toBe(
      "This needs the role editor in this environment; yours is viewer.",
    );
  });

  it("changes states there, and neither settings nor other environments", async () => {
    const { editor, inSecond } = await givenEditor();
    const { body: made } = await editor.send("POST", "/api/v1/flags", flag());
    const change = (body: object, headers = {}) =>
      editor.send("PATCH", `/api/v1/flags/${made.id}`, body, headers);
    expect((await change({ enabled: true }, inSecond)).status).toBe(200);
    expect((await change({ enabled: true })).status).toBe(403);
    expect((await change({ name: "Another" }, inSecond)).status).toBe(403);
    expect((await change({ name: made.name, enabled: false }, inSecond)).status).toBe(200);
  });

  it("is the author of a change, without an API key", async () => {
    const { scope, editor } = await givenEditor();
    await editor.send("POST", "/api/v1/flags", flag());
    const path = `/api/v1/projects/${scope.project.id}/changes?limit=1`;
    const { body } = await editor.send("GET", path);
    expect(body.changes[0]).toMatchObject({
      actor: { id: editor.userId, via: "passkey" },
      api_key_id: null,
    });
  });
});

describe("given roles in some projects", () => {
  it("lists only the projects that the person may view", async () => {
    const scope = await given.scope();
    const other = await given.project(scope.organizationId);
    const viewer = await signedIn(scope, "viewer", { project: scope.project.id });
    const path = `/api/v1/organizations/${scope.organizationId}/projects`;
    const { body } = await viewer.send("GET", path);
    expect(body.projects.map(({ id }: { id: string }) => id)).toEqual([scope.project.id]);
    expect((await viewer.send("GET", `${path}/${other.id}`)).status).toBe(404);
  });

  it("hides other organizations", async () => {
    const [own, foreign] = [await given.scope(), await given.scope()];
    const owner = await signedIn(own, "owner", { organization: own.organizationId });
    const path = `/api/v1/organizations/${foreign.organizationId}`;
    expect((await owner.send("GET", path)).status).toBe(404);
    expect((await owner.send("PATCH", path, { name: "Mine" })).status).toBe(404);
    const header = { "halyard-environment": foreign.first.id };
    expect((await owner.send("GET", "/api/v1/flags", undefined, header)).status).toBe(404);
    const crossed = `/api/v1/organizations/${own.organizationId}/projects/${foreign.project.id}`;
    expect((await owner.send("GET", crossed)).status).toBe(404);
  });

  it("requires the environment in a header, in place of that of an API key", async () => {
    const scope = await given.scope();
    const viewer = await signedIn(scope, "viewer", { project: scope.project.id });
    const { headers } = viewer;
    const { status, body } = await management.call("/api/v1/flags", {
      headers: { cookie: headers.cookie },
    });
    expect([status, body.error.code]).toEqual([400, "VALIDATION_001"]);
    expect((await viewer.send("GET", "/api/v1/flags")).headers.get("vary")).toBe(
      "Authorization, Cookie, Halyard-Environment",
    );
  });
});

describe("given an owner and an admin", () => {
  it("leaves the plan to the operator", async () => {
    const scope = await given.scope();
    const owner = await signedIn(scope, "owner", { organization: scope.organizationId });
    const change = (body: object) =>
      owner.send("PATCH", `/api/v1/organizations/${scope.organizationId}`, body);
    expect((await change({ name: "Renamed" })).status).toBe(200);
    expect((await change({ plan: "free" })).status).toBe(403);
  });

  it("lets admins of the organization manage service users, and only owners people", async () => {
    const scope = await given.scope();
    const admin = await signedIn(scope, "admin", { organization: scope.organizationId });
    const path = `/api/v1/organizations/${scope.organizationId}/users`;
    const create = (kind: string) =>
      admin.send("POST", path, { email: `${uuidv7()}@example.com`, kind });
    const { status, body } = await create("service");
    expect(status).toBe(201);
    expect((await create("person")).status).toBe(403);
    const remove = (id: string) => admin.send("DELETE", `${path}/${id}?confirm=${id}`);
    expect((await remove(scope.userId)).status).toBe(403);
    expect((await remove(body.id)).status).toBe(204);
  });

  it("lets admins rename environments, which keys cannot", async () => {
    const scope = await given.scope();
    const admin = await signedIn(scope, "admin", { project: scope.project.id });
    const path = `/api/v1/projects/${scope.project.id}/environments/${scope.first.id}`;
    const byKey = { method: "PATCH", key: scope.serverKey, body: { name: "live" } };
    expect((await management.call(path, byKey)).status).toBe(403);
    expect((await admin.send("PATCH", path, { name: "live" })).status).toBe(200);
  });
});

describe("given API keys", () => {
  it("lets people handle their own keys, and admins those of service users", async () => {
    const scope = await given.scope();
    const viewer = await signedIn(scope, "viewer", { project: scope.project.id });
    const admin = await signedIn(scope, "admin", { project: scope.project.id });
    const { body: service } = await management.call(
      `/api/v1/organizations/${scope.organizationId}/users`,
      {
        ...{ method: "POST", key: operatorToken },
        body: { email: `${uuidv7()}@example.com`, kind: "service" },
      },
    );
    const path = `/api/v1/projects/${scope.project.id}/environments/${scope.first.id}/keys`;
    const issue = async (person: typeof viewer, userId?: string) =>
      person.send("POST", path, {
        ...{ kind: "server", name: "A key" },
        ...(userId !== undefined && { user_id: userId }),
      });
    const own = await issue(viewer);
    expect([own.status, own.body.user_id]).toEqual([201, viewer.userId]);
    expect((await issue(viewer, service.id)).status).toBe(403);
    expect((await issue(admin, service.id)).status).toBe(201);
    expect((await issue(admin, viewer.userId)).status).toBe(403);

    const idsOf = async (person: typeof viewer) => {
      const { body } = await person.send("GET", path);
      return body.keys.map(({ user_id }: { user_id: string }) => user_id).toSorted();
    };
    expect(await idsOf(viewer)).toEqual([viewer.userId]);
    expect(await idsOf(admin)).toEqual([scope.userId, viewer.userId, service.id].toSorted());
    const revoke = (person: typeof viewer) => person.send("DELETE", `${path}/${own.body.id}`);
    expect((await revoke(admin)).status).toBe(204);
  });

  it("gives the key in a stored response to the same session only, not to another of the person", async () => {
    const scope = await given.scope();
    const person = await signedIn(scope, "editor", { project: scope.project.id });
    const other = { cookie: cookieOf(await begin(person.personId)) };
    const path = `/api/v1/projects/${scope.project.id}/environments/${scope.first.id}/keys`;
    const body = { kind: "server", name: "A key" };
    const once = { "idempotency-key": "the same" };
    const issue = (more = {}) => person.send("POST", path, body, { ...once, ...more });
    const first = await issue();
    expect(first.status).toBe(201);
    expect((await issue()).body).toEqual(first.body);
    const second = await issue(other);
    expect(second.status).toBe(201);
    expect(second.body.key).not.toBe(first.body.key);
  });
});

describe("given other credentials beside a session", () => {
  async function givenViewer() {
    const scope = await given.scope();
    const viewer = await signedIn(scope, "viewer", { project: scope.project.id });
    const list = (more: Record<string, string>) =>
      viewer.send("GET", "/api/v1/flags", undefined, more);
    return { scope, viewer, list };
  }

  it.each([
    ["Basic", `Basic ${Buffer.from("proxy:password").toString("base64")}`],
    ["Digest", 'Digest username="proxy"'],
    ["Negotiate", "Negotiate YII="],
  ])("ignores the scheme %s of a proxy in front", async (_, authorization) => {
    const { list } = await givenViewer();
    expect((await list({ authorization })).status).toBe(200);
    expect((await list({ authorization, cookie: "" })).status).toBe(401);
  });

  it("prefers a bearer token, and does not fall back to the session", async () => {
    const { scope, viewer, list } = await givenViewer();
    for (const token of ["invalid", ""])
      expect((await list({ authorization: `Bearer ${token}` })).status).toBe(401);
    const authorization = `bearer ${scope.serverKey}`;
    const created = await viewer.send("POST", "/api/v1/flags", flag(), { authorization });
    expect(created.status).toBe(201);
  });

  it("rejects two cookies with the same name, because another application may have set one", async () => {
    const { viewer, list } = await givenViewer();
    const { cookie } = viewer.headers;
    const planted = cookieOf(await begin((await givenViewer()).viewer.personId));
    for (const both of [`${cookie}; ${planted}`, `${planted}; ${cookie}`, `${cookie}; ${cookie}`])
      expect((await list({ cookie: both })).status).toBe(401);
  });

  it("ignores cookies of other ports", async () => {
    const { viewer, list } = await givenViewer();
    const { cookie } = viewer.headers;
    const ofOtherPort = cookie.replace(cookieName, "halyard-session-8081");
    const longer = cookie.replace(cookieName, `${cookieName}1`);
    expect((await list({ cookie: `${ofOtherPort}; ${cookie}; ${longer}` })).status).toBe(200);
    for (const others of [ofOtherPort, longer, cookie.replace(cookieName, "halyard-session")])
      expect((await list({ cookie: others })).status).toBe(401);
  });
});

describe("given an open stream of changes by session", () => {
  async function givenStream() {
    const scope = await given.scope();
    const viewer = await signedIn(scope, "viewer", { project: scope.project.id });
    const url = `${management.url}/api/v1/projects/${scope.project.id}/changes/stream`;
    const stream = await openEventStream(url, viewer.headers);
    expect(stream.status).toBe(200);
    return { scope, viewer, stream };
  }

  it("ends when the session ends", async () => {
    const { viewer, stream } = await givenStream();
    await management.writer(async (write) => {
      await endSessions(write, { personId: viewer.personId });
      return {};
    });
    await stream.ended;
  });

  it("ends when the role is withdrawn", async () => {
    const { scope, viewer, stream } = await givenStream();
    await given.withdraw(scope.organizationId, viewer.grantId);
    await stream.ended;
  });
});
