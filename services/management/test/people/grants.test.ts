import { randomUUID } from "node:crypto";
import type { CreateGrant } from "@halyard/contracts";
import { isProblem } from "@halyard/http";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { giveRole, withdrawRole } from "../../src/people/grant-changes.ts";
import type { GroupSettings } from "../../src/people/group-grants.ts";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { peopleOf } from "./people-fixture.ts";

/** Tests giving and withdrawing roles. */

const management = await openManagement({ groupsOrganizations: "all" });
afterAll(() => management.close());
const given = peopleOf(management);

const remove = (path: string) => management.call(path, { method: "DELETE", key: operatorToken });
const userPath = (organizationId: string, userId: string) =>
  `/api/v1/organizations/${organizationId}/users/${userId}`;

const statusAndCode = (answer: { status: number; body: { error?: { code: string } } }) => [
  answer.status,
  answer.body?.error?.code,
];
const lastOwner = [409, "CONFLICT_001"];

describe("giving a role", () => {
  it("is recorded, listed, and published with the user", async () => {
    const { organizationId, userId, project, first } = await given.scope();
    const body = {
      subject: { user_id: userId },
      role: "editor",
      scope: { project: project.id, environments: [first.id] },
    };
    const answer = await given.grant(organizationId, body);
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      id: expect.any(String),
      ...body,
      created_at: expect.any(String),
    });
    const listed = await management.call(given.grantsOf(organizationId), { key: operatorToken });
    expect(listed.body).toEqual({ grants: [answer.body] });
    expect(await given.entry(`user.${organizationId}.${userId}`)).toMatchObject({
      person_id: null,
      governed: true,
      grants: [{ role: "editor", project_id: project.id, environment_ids: [first.id] }],
    });
    expect(await given.audit(organizationId)).toMatchObject([
      { action: "granted", user_id: userId, actor: { via: "operator" }, before: null, after: body },
    ]);
  });

  it("takes ids in upper case", async () => {
    const { organizationId, userId, project, first } = await given.scope();
    const answer = await given.grant(organizationId.toUpperCase(), {
      subject: { user_id: userId.toUpperCase() },
      role: "viewer",
      scope: { project: project.id.toUpperCase(), environments: [first.id.toUpperCase()] },
    });
    expect(answer.body).toMatchObject({
      subject: { user_id: userId },
      scope: { project: project.id, environments: [first.id] },
    });
  });

  it("is rejected if the user has this role already", async () => {
    const { organizationId, userId } = await given.scope();
    const body = {
      subject: { user_id: userId },
      role: "admin",
      scope: { organization: organizationId },
    };
    expect((await given.grant(organizationId, body)).status).toBe(201);
    expect(statusAndCode(await given.grant(organizationId, body))).toEqual([409, "CONFLICT_001"]);
  });

  it("rejects users, projects and environments of others, and owners of a project", async () => {
    const [scope, other] = [await given.scope(), await given.scope()];
    const { organizationId, userId, project, first } = scope;
    const subject = { user_id: userId };
    const inOrganization = { organization: organizationId };
    for (const [body, member] of [
      [{ subject: { user_id: other.userId }, scope: inOrganization }, "/subject/user_id"],
      [{ subject, scope: { organization: other.organizationId } }, "/scope/organization"],
      [{ subject, scope: { project: other.project.id } }, "/scope"],
      [{ subject, scope: { project: project.id, environments: [other.first.id] } }, "/scope"],
      [{ subject, scope: { project: other.project.id, environments: [first.id] } }, "/scope"],
      [{ subject, role: "owner", scope: { project: project.id } }, "/role"],
    ] as const) {
      const answer = await given.grant(organizationId, { role: "viewer", ...body });
      expect(statusAndCode(answer)).toEqual([400, "VALIDATION_001"]);
      expect(answer.body.error.message).toContain(member);
    }
  });

  it("does not exist in an unknown organization", async () => {
    const { userId } = await given.scope();
    const id = randomUUID();
    const body = { subject: { user_id: userId }, role: "viewer", scope: { organization: id } };
    expect((await given.grant(id, body)).status).toBe(404);
  });

  it("is not possible with an API key", async () => {
    const { organizationId, userId, serverKey } = await given.scope();
    const scope = { organization: organizationId };
    const body = { subject: { user_id: userId }, role: "viewer", scope };
    const answer = await given.grant(organizationId, body, serverKey);
    expect(statusAndCode(answer)).toEqual([403, "AUTH_002"]);
  });

  it("publishes the roles of all groups together", async () => {
    const { organizationId, project } = await given.scope();
    const scope = { project: project.id };
    const first = await given.grant(organizationId, {
      subject: { group: "__proto__" },
      role: "editor",
      scope,
    });
    await given.grant(organizationId, { subject: { group: "staff" }, role: "viewer", scope });
    await given.withdraw(organizationId, first.body.id);
    expect(await given.entry(`groups.${organizationId}`)).toMatchObject({
      grants: [{ group: "staff", role: "viewer", project_id: project.id }],
    });
    const [, , granted] = await given.audit(organizationId);
    expect(granted).toMatchObject({ user_id: null, after: { subject: { group: "__proto__" } } });
  });
});

describe("withdrawing a role", () => {
  it("leaves the user bound by roles", async () => {
    const { organizationId, userId } = await given.scope();
    const subject = { user_id: userId };
    const scope = { organization: organizationId };
    const { body } = await given.grant(organizationId, { subject, role: "admin", scope });
    expect((await given.withdraw(organizationId, body.id)).status).toBe(204);
    expect(await given.entry(`user.${organizationId}.${userId}`)).toMatchObject({
      governed: true,
      grants: [],
    });
    expect((await given.withdraw(organizationId, body.id)).status).toBe(404);
    const [withdrawn] = await given.audit(organizationId);
    expect(withdrawn).toMatchObject({
      action: "grant_withdrawn",
      user_id: userId,
      before: { subject, role: "admin", scope },
      after: null,
    });
  });

  it("does not reach grants of another organization", async () => {
    const [one, other] = [await given.scope(), await given.scope()];
    const grantId = await given.owner(one.organizationId, one.userId);
    expect((await given.withdraw(other.organizationId, grantId)).status).toBe(404);
  });
});

describe("given a signed-in person", () => {
  const settings = { groupsOrganizations: "all" } as const;
  const codeOf = (done: object) => (isProblem(done) ? done.rejected : "done");

  it("gives roles up to admin in the project of an admin, and no others", async () => {
    const { organizationId, userId, project, second } = await given.scope();
    const { id: other } = await given.user(organizationId);
    const inProject = { project: project.id };
    const body = { subject: { user_id: userId }, role: "admin", scope: inProject };
    await given.grant(organizationId, body);
    const grants = [{ role: "admin", project_id: project.id }] as const;
    const give = (request: Omit<CreateGrant, "subject">) =>
      given.asUser(userId, { grants }, (change, giver) => {
        const subject = { user_id: other };
        return giveRole(change, giver, { organizationId, subject, ...request }, settings);
      });
    const inOrganization = { organization: organizationId };
    const inOne = { ...inProject, environments: [second.id] };
    expect(codeOf(await give({ role: "admin", scope: inProject }))).toBe("done");
    expect(codeOf(await give({ role: "editor", scope: inOne }))).toBe("done");
    expect(codeOf(await give({ role: "viewer", scope: inOrganization }))).toBe("AUTH_002");
    expect(codeOf(await give({ role: "owner", scope: inOrganization }))).toBe("AUTH_002");
    const [newest] = await given.audit(organizationId);
    expect(newest).toMatchObject({ actor: { id: userId, via: "passkey" } });
  });

  it("gives nothing by a role that was withdrawn a moment ago", async () => {
    const { organizationId, userId } = await given.scope();
    const scope = { organization: organizationId };
    const done = await given.asUser(userId, { grants: [{ role: "owner" }] }, (change, giver) => {
      const request = { subject: { user_id: userId }, role: "viewer", scope } as const;
      return giveRole(change, giver, { organizationId, ...request }, settings);
    });
    expect(codeOf(done)).toBe("AUTH_002");
  });

  it("has the roles of the session's groups, where groups are mapped", async () => {
    const { organizationId, userId } = await given.scope();
    const scope = { organization: organizationId };
    await given.grant(organizationId, { subject: { group: "admins" }, role: "admin", scope });
    const session = { groups: ["admins"], grants: [{ role: "admin" }] } as const;
    const give = (groups: GroupSettings) =>
      given.asUser(userId, session, (change, giver) => {
        const request = { subject: { user_id: userId }, role: "viewer", scope } as const;
        return giveRole(change, giver, { organizationId, ...request }, groups);
      });
    expect(codeOf(await give({ groupsOrganizations: [] }))).toBe("AUTH_002");
    expect(codeOf(await give(settings))).toBe("done");
  });

  it("remains an owner if two owners withdraw each other's role at the same time", async () => {
    const { organizationId, userId } = await given.scope();
    const { id: second } = await given.user(organizationId);
    await given.person(userId);
    await given.person(second);
    const first = await given.owner(organizationId, userId);
    const other = await given.owner(organizationId, second);
    const withdraw = (by: string, grantId: string) =>
      given.asUser(by, { grants: [{ role: "owner" }] }, (change, giver) =>
        withdrawRole(change, giver, { organizationId, grantId }, settings),
      );
    const done = await Promise.all([withdraw(userId, other), withdraw(second, first)]);
    expect(done.map(codeOf).sort()).toEqual(["CONFLICT_001", "done"]);
  });

  it("is rejected for its role even if the grant is that of the last owner", async () => {
    const { organizationId, userId } = await given.scope();
    const { id: admin } = await given.user(organizationId);
    await given.person(userId);
    const grantId = await given.owner(organizationId, userId);
    const done = await given.asUser(admin, { grants: [{ role: "admin" }] }, (change, giver) =>
      withdrawRole(change, giver, { organizationId, grantId }, settings),
    );
    expect(codeOf(done)).toBe("AUTH_002");
  });
});

describe("given a deleted project", () => {
  it("lists no roles in it", async () => {
    const { organizationId, userId, project } = await given.scope();
    const subject = { user_id: userId };
    await given.grant(organizationId, { subject, role: "admin", scope: { project: project.id } });
    const projectPath = `/api/v1/organizations/${organizationId}/projects/${project.id}`;
    expect((await remove(`${projectPath}?confirm=${project.id}`)).status).toBe(204);
    const listed = await management.call(given.grantsOf(organizationId), { key: operatorToken });
    expect(listed.body).toEqual({ grants: [] });
  });
});

describe("the last owner who can sign in", () => {
  it("remains an owner, and a user", async () => {
    const { organizationId, userId } = await given.scope();
    const grantId = await given.owner(organizationId, userId);
    await given.person(userId);
    // Neither a user without a person nor a service user replaces the owner.
    await given.owner(organizationId, (await given.user(organizationId)).id);
    const service = await management.call(`/api/v1/organizations/${organizationId}/users`, {
      method: "POST",
      key: operatorToken,
      body: { email: `robot@${organizationId}.example`, kind: "service" },
    });
    await given.owner(organizationId, service.body.id);
    expect(statusAndCode(await given.withdraw(organizationId, grantId))).toEqual(lastOwner);
    const path = `${userPath(organizationId, userId)}?confirm=${userId}`;
    expect(statusAndCode(await remove(path))).toEqual(lastOwner);
  });

  it("can be replaced by another one", async () => {
    const { organizationId, userId } = await given.scope();
    const grantId = await given.owner(organizationId, userId);
    const { id: successor } = await given.user(organizationId);
    await given.owner(organizationId, successor);
    await given.person(userId);
    await given.person(successor);
    expect((await given.withdraw(organizationId, grantId)).status).toBe(204);
  });

  it("is one of two whose roles are withdrawn at the same time", async () => {
    const { organizationId, userId } = await given.scope();
    const { id: second } = await given.user(organizationId);
    await given.person(userId);
    await given.person(second);
    const grants = [
      await given.owner(organizationId, userId),
      await given.owner(organizationId, second),
    ];
    const answers = await Promise.all(grants.map((id) => given.withdraw(organizationId, id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 409]);
  });

  it("is one of two who are demoted and removed at the same time", async () => {
    const { organizationId, userId } = await given.scope();
    const { id: second } = await given.user(organizationId);
    await given.person(userId);
    await given.person(second);
    const grantId = await given.owner(organizationId, userId);
    await given.owner(organizationId, second);
    const answers = await Promise.all([
      given.withdraw(organizationId, grantId),
      remove(`${userPath(organizationId, second)}?confirm=${second}`),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([204, 409]);
  });
});

describe("given an organization that maps no groups", () => {
  it("publishes an empty entry at the begin of the next term", async () => {
    const own = await openManagement({ groupsOrganizations: "all" });
    const people = peopleOf(own);
    const { organizationId } = await people.scope();
    const body = { role: "viewer", scope: { organization: organizationId } };
    await people.grant(organizationId, { subject: { group: "staff" }, ...body });
    await own.stop();
    const closed = await openManagement({ over: own.backends });
    const entryOf = () => peopleOf(closed).entry(`groups.${organizationId}`);
    await eventually(entryOf, { until: ({ grants }) => grants.length === 0 });
    await closed.stop();
    const opened = await openManagement({ over: own.backends, groupsOrganizations: "all" });
    const again = () => peopleOf(opened).entry(`groups.${organizationId}`);
    await eventually(again, { until: ({ grants }) => grants.length === 1 });
    await opened.close();
  });

  it("rejects roles of groups", async () => {
    const closed = await openManagement({ over: management.backends });
    const { organizationId } = await given.scope();
    const answer = await closed.call(given.grantsOf(organizationId), {
      method: "POST",
      key: operatorToken,
      body: {
        subject: { group: "staff" },
        role: "viewer",
        scope: { organization: organizationId },
      },
    });
    expect(statusAndCode(answer)).toEqual([400, "VALIDATION_001"]);
    await closed.stop();
  });
});
