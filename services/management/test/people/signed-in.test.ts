import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { peopleOf } from "./people-fixture.ts";

/** Tests roles, and keys of service users, by session. */

const management = await openManagement({ groupsOrganizations: "all" });
afterAll(() => management.close());
const given = peopleOf(management);

const outcomeOf = (answer: { status: number; body: { error?: { code: string } } }) => [
  answer.status,
  answer.body?.error?.code,
];
const forbidden = [403, "AUTH_002"];

type Scope = Awaited<ReturnType<typeof given.scope>>;

/** Gives the user of a scope a role in the project, and signs the user in. */
async function signedIn(scope: Scope, role: string) {
  const { organizationId, userId, project } = scope;
  const subject = { user_id: userId };
  const body =
    role === "owner"
      ? { subject, role, scope: { organization: organizationId } }
      : { subject, role, scope: { project: project.id } };
  const granted = await given.grant(organizationId, body);
  return { call: await given.signIn(scope), grantId: granted.body.id as string };
}

async function serviceUser({ organizationId }: Scope): Promise<string> {
  const created = await management.call(`/api/v1/organizations/${organizationId}/users`, {
    method: "POST",
    key: operatorToken,
    body: { email: "robot@example.com", kind: "service" },
  });
  return created.body.id;
}

describe("a signed-in person", () => {
  it("gives roles as an admin of a project, which the audit log names", async () => {
    const scope = await given.scope();
    const { call } = await signedIn(scope, "admin");
    const { organizationId, project, userId } = scope;
    const { id: other } = await given.user(organizationId);
    const body = {
      subject: { user_id: other },
      role: "editor",
      scope: { project: project.id },
    };
    const granted = await call(given.grantsOf(organizationId), { method: "POST", body });
    expect(granted.status).toBe(201);
    const [newest] = await given.audit(organizationId);
    expect(newest).toMatchObject({ actor: { id: userId, via: "passkey" }, api_key_id: null });
    const path = `${given.grantsOf(organizationId)}/${granted.body.id}`;
    expect((await call(path, { method: "DELETE" })).status).toBe(204);
  });

  it("gives no role of the organization, and none to a group, as an admin of a project", async () => {
    const scope = await given.scope();
    const { call } = await signedIn(scope, "admin");
    const { organizationId, userId, project } = scope;
    const subject = { user_id: userId };
    for (const body of [
      { subject, role: "viewer", scope: { organization: organizationId } },
      { subject, role: "owner", scope: { organization: organizationId } },
      { subject: { group: "staff" }, role: "viewer", scope: { project: project.id } },
    ])
      expect(
        outcomeOf(await call(given.grantsOf(organizationId), { method: "POST", body })),
      ).toEqual(forbidden);
  });

  it("gives no role as an approver", async () => {
    const scope = await given.scope();
    const { call } = await signedIn(scope, "approver");
    const { organizationId, userId, project } = scope;
    const body = {
      subject: { user_id: userId },
      role: "viewer",
      scope: { project: project.id },
    };
    const answer = await call(given.grantsOf(organizationId), { method: "POST", body });
    expect(outcomeOf(answer)).toEqual(forbidden);
  });

  it("gives no role after 30 minutes without a confirmation", async () => {
    const scope = await given.scope();
    const { call } = await signedIn(scope, "owner");
    const { organizationId, userId } = scope;
    const clock = { ...management.clock };
    const now = management.clock.now().getTime();
    management.clock.now = () => new Date(now + 31 * 60_000);
    const inOrganization = { organization: organizationId };
    const body = { subject: { user_id: userId }, role: "viewer", scope: inOrganization };
    const answer = await call(given.grantsOf(organizationId), { method: "POST", body });
    Object.assign(management.clock, clock);
    expect(outcomeOf(answer)).toEqual([403, "AUTH_003"]);
  });

  it("gives roles by a role of a group", async () => {
    const scope = await given.scope();
    const { organizationId, userId, project } = scope;
    const inProject = { project: project.id };
    await given.grant(organizationId, {
      subject: { group: "admins" },
      role: "admin",
      scope: inProject,
    });
    const call = await given.signIn(scope, ["admins"]);
    const body = { subject: { user_id: userId }, role: "viewer", scope: inProject };
    const answer = await call(given.grantsOf(organizationId), { method: "POST", body });
    expect(answer.status).toBe(201);
  });

  it("issues no key for itself by a role of a group, which does not bound keys", async () => {
    const scope = await given.scope();
    const { organizationId, project, first } = scope;
    await given.grant(organizationId, {
      ...{ subject: { group: "readers" }, role: "viewer", scope: { project: project.id } },
    });
    const { id: userId } = await given.user(organizationId);
    const call = await given.signIn({ organizationId, userId }, ["readers"]);
    const path = `/api/v1/projects/${project.id}/environments/${first.id}/keys`;
    const body = { kind: "server", name: "A key" };
    const answer = await call(path, { method: "POST", body });
    expect([answer.status, answer.body.error.code]).toEqual([403, "AUTH_002"]);
  });

  it("loses the role within a second of its withdrawal", async () => {
    const scope = await given.scope();
    const { call, grantId } = await signedIn(scope, "admin");
    const { organizationId } = scope;
    expect((await call(given.grantsOf(organizationId))).status).toBe(200);
    await given.withdraw(organizationId, grantId);
    await eventually(() => call(given.grantsOf(organizationId)), {
      until: ({ status }) => status === 404,
    });
  });

  it("reads the audit log of the organization as an owner only", async () => {
    const [one, other] = [await given.scope(), await given.scope()];
    const owner = await signedIn(one, "owner");
    const admin = await signedIn(other, "admin");
    const logOf = ({ organizationId }: Scope) => `/api/v1/organizations/${organizationId}/changes`;
    expect((await owner.call(logOf(one))).status).toBe(200);
    expect(outcomeOf(await admin.call(logOf(other)))).toEqual(forbidden);
    expect((await admin.call(logOf(one))).status).toBe(404);
  });

  it("cannot end sessions of other people, or unlink users", async () => {
    const scope = await given.scope();
    const { call } = await signedIn(scope, "owner");
    const path = `/api/v1/organizations/${scope.organizationId}/users/${scope.userId}`;
    for (const name of ["sessions", "person"])
      expect(outcomeOf(await call(`${path}/${name}`, { method: "DELETE" }))).toEqual(forbidden);
  });
});

describe("users of an organization", () => {
  const usersOf = ({ organizationId }: Scope) => `/api/v1/organizations/${organizationId}/users`;
  const person = { email: "linus@example.com" };
  const service = { email: "robot@example.com", kind: "service" };

  it("are created, renamed and deleted by an owner", async () => {
    const scope = await given.scope();
    const { call } = await signedIn(scope, "owner");
    const created = await call(usersOf(scope), { method: "POST", body: person });
    expect(created.status).toBe(201);
    const path = `${usersOf(scope)}/${created.body.id}`;
    expect((await call(path, { method: "PATCH", body: { name: "Linus" } })).status).toBe(200);
    const confirmed = `${path}?confirm=${created.body.id}`;
    expect((await call(confirmed, { method: "DELETE" })).status).toBe(204);
  });

  it("are service users only, if an admin of the organization creates or deletes them", async () => {
    const scope = await given.scope();
    const { organizationId, userId } = scope;
    const inOrganization = { organization: organizationId };
    const body = { subject: { user_id: userId }, role: "admin", scope: inOrganization };
    await given.grant(organizationId, body);
    const call = await given.signIn(scope);
    const created = await call(usersOf(scope), { method: "POST", body: service });
    expect(created.status).toBe(201);
    const { id } = created.body;
    const removed = await call(`${usersOf(scope)}/${id}?confirm=${id}`, { method: "DELETE" });
    expect(removed.status).toBe(204);
    const refused = await call(usersOf(scope), { method: "POST", body: person });
    expect(outcomeOf(refused)).toEqual(forbidden);
    const own = `${usersOf(scope)}/${userId}?confirm=${userId}`;
    expect(outcomeOf(await call(own, { method: "DELETE" }))).toEqual(forbidden);
  });

  it("are not created by an admin of a project", async () => {
    const scope = await given.scope();
    const { call } = await signedIn(scope, "admin");
    const answer = await call(usersOf(scope), { method: "POST", body: service });
    expect(outcomeOf(answer)).toEqual(forbidden);
  });
});

describe("a key of a service user", () => {
  const keysOf = ({ project, first }: Scope) =>
    `/api/v1/projects/${project.id}/environments/${first.id}/keys`;
  const aKey = (userId: string) => ({ kind: "server", name: "Pipeline", user_id: userId });

  it("is issued, rotated and revoked by an admin of the project", async () => {
    const scope = await given.scope();
    const { call } = await signedIn(scope, "admin");
    const body = aKey(await serviceUser(scope));
    const issued = await call(keysOf(scope), { method: "POST", body });
    expect(issued.body).toMatchObject({ user_id: body.user_id, issued_by: null });
    const path = `${keysOf(scope)}/${issued.body.id}`;
    const rotated = await call(`${path}/rotate`, { method: "POST", body: {} });
    expect(rotated.status).toBe(201);
    const revoked = await call(`${keysOf(scope)}/${rotated.body.id}`, { method: "DELETE" });
    expect(revoked.status).toBe(204);
  });

  it("is not issued by an editor, and an admin issues none for another person", async () => {
    const [one, other] = [await given.scope(), await given.scope()];
    const editor = await signedIn(one, "editor");
    const admin = await signedIn(other, "admin");
    const robot = aKey(await serviceUser(one));
    const person = aKey((await given.user(other.organizationId)).id);
    expect(outcomeOf(await editor.call(keysOf(one), { method: "POST", body: robot }))).toEqual(
      forbidden,
    );
    expect(outcomeOf(await admin.call(keysOf(other), { method: "POST", body: person }))).toEqual(
      forbidden,
    );
  });

  it("ends with the service user", async () => {
    const scope = await given.scope();
    const userId = await serviceUser(scope);
    const { id } = await given.key(scope.first, { user_id: userId });
    const path = `/api/v1/organizations/${scope.organizationId}/users/${userId}?confirm=${userId}`;
    await management.call(path, { method: "DELETE", key: operatorToken });
    await eventually(() => management.directory.find(id, Date.now()) === undefined);
  });
});
