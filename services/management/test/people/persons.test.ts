import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, operatorToken } from "../management-fixture.ts";
import { peopleOf } from "./people-fixture.ts";

/** Tests what the operator does with the person of a user, and the removal of users who have one. */

const management = await openManagement();
afterAll(() => management.close());
const given = peopleOf(management);

const remove = (path: string) => management.call(path, { method: "DELETE", key: operatorToken });
const userPath = ({ organizationId, userId }: { organizationId: string; userId: string }) =>
  `/api/v1/organizations/${organizationId}/users/${userId}`;
const signsIn = async (scope: { organizationId: string; userId: string }) =>
  (await management.call(userPath(scope), { key: operatorToken })).body.signs_in;
const sessionsOf = async (personId: string) =>
  (await management.sql`select from sessions where person_id = ${personId}`).count;
const isKnown = async (personId: string) =>
  (await management.sql`select from people where id = ${personId}`).count === 1;

describe("ending the sessions of a user", () => {
  it("ends all sessions of the person", async () => {
    const scope = await given.scope();
    const personId = await given.person(scope.userId);
    await given.session(personId);
    await given.session(personId);
    expect((await remove(`${userPath(scope)}/sessions`)).status).toBe(204);
    expect(await sessionsOf(personId)).toBe(0);
    expect(await signsIn(scope)).toBe(true);
    expect(await given.audit(scope.organizationId)).toMatchObject([
      { action: "sessions_ended", user_id: scope.userId },
    ]);
  });

  it("has no effect for a user who never signed in", async () => {
    const scope = await given.scope();
    expect((await remove(`${userPath(scope)}/sessions`)).status).toBe(204);
    expect(await given.audit(scope.organizationId)).toEqual([]);
  });

  it("is for the operator only", async () => {
    const scope = await given.scope();
    const path = `${userPath(scope)}/sessions`;
    const answer = await management.call(path, { method: "DELETE", key: scope.serverKey });
    expect([answer.status, answer.body.error.code]).toEqual([403, "AUTH_002"]);
  });
});

describe("unlinking a user", () => {
  it("removes a person without other users, and ends the sessions", async () => {
    const scope = await given.scope();
    await given.owner(scope.organizationId, scope.userId);
    const personId = await given.person(scope.userId);
    await given.session(personId);
    expect((await remove(`${userPath(scope)}/person`)).status).toBe(204);
    expect(await signsIn(scope)).toBe(false);
    expect(await isKnown(personId)).toBe(false);
    expect(await sessionsOf(personId)).toBe(0);
    expect(await given.entry(`user.${scope.organizationId}.${scope.userId}`)).toMatchObject({
      person_id: null,
      grants: [{ role: "owner" }],
    });
    const [unlinked] = await given.audit(scope.organizationId);
    expect(unlinked).toMatchObject({ action: "user_unlinked", user_id: scope.userId });
  });

  it("leaves the person and the user of another organization as they are", async () => {
    const [one, other] = [await given.scope(), await given.scope()];
    const personId = await given.person(one.userId, other.userId);
    await given.session(personId);
    expect((await remove(`${userPath(one)}/person`)).status).toBe(204);
    expect([await signsIn(one), await signsIn(other)]).toEqual([false, true]);
    expect(await sessionsOf(personId)).toBe(1);
  });

  it("does not exist for an unknown user", async () => {
    const [one, other] = [await given.scope(), await given.scope()];
    const path = userPath({ organizationId: one.organizationId, userId: other.userId });
    expect((await remove(`${path}/person`)).status).toBe(404);
  });
});

describe("removing a user who has signed in", () => {
  it("removes roles, person and sessions", async () => {
    const scope = await given.scope();
    const { organizationId, userId } = scope;
    await given.grant(organizationId, {
      subject: { user_id: userId },
      role: "admin",
      scope: { organization: organizationId },
    });
    const personId = await given.person(userId);
    await given.session(personId);
    expect((await remove(`${userPath(scope)}?confirm=${userId}`)).status).toBe(204);
    const listed = await management.call(given.grantsOf(organizationId), { key: operatorToken });
    expect(listed.body.grants).toEqual([]);
    expect(await isKnown(personId)).toBe(false);
    expect(await sessionsOf(personId)).toBe(0);
    expect(await given.entry(`user.${organizationId}.${userId}`)).toMatchObject({ deleted: true });
  });

  it("leaves the user of another organization as it is", async () => {
    const [one, other] = [await given.scope(), await given.scope()];
    const personId = await given.person(one.userId, other.userId);
    expect((await remove(`${userPath(one)}?confirm=${one.userId}`)).status).toBe(204);
    expect(await signsIn(other)).toBe(true);
    expect(await isKnown(personId)).toBe(true);
  });
});

describe("deleting an organization", () => {
  it("removes its roles, and people without another user", async () => {
    const [scope, other] = [await given.scope(), await given.scope()];
    const { organizationId, userId } = scope;
    const { id: second } = await given.user(organizationId);
    await given.owner(organizationId, userId);
    const alone = await given.person(userId);
    const shared = await given.person(second, other.userId);
    await given.session(alone);
    await given.session(shared);
    await remove(`/api/v1/organizations/${organizationId}?confirm=${organizationId}`);
    await eventually(() => isKnown(alone), { until: (known) => !known });
    await eventually(() => given.entry(`user.${organizationId}.${userId}`), {
      until: ({ deleted }) => deleted === true,
    });
    expect([await sessionsOf(alone), await sessionsOf(shared)]).toEqual([0, 1]);
    expect(await signsIn(other)).toBe(true);
    // The rows of the users go last.
    await eventually(() => management.sql`select from users where id = ${userId}`, {
      until: ({ length }) => length === 0,
    });
  });
});

describe("erasing a user who has signed in", () => {
  it("leaves no address, and does not change entries of grants", async () => {
    const scope = await given.scope();
    const { organizationId, userId } = scope;
    const subject = { user_id: userId };
    const inOrganization = { organization: organizationId };
    await given.grant(organizationId, { subject, role: "admin", scope: inOrganization });
    const personId = await given.person(userId);
    const { email } = (await management.call(userPath(scope), { key: operatorToken })).body;
    await management.sql`
      insert into identities (issuer, subject, person_id, email, created_at)
      values ('https://id.example.com', ${userId}, ${personId}, ${email}, now())`;
    await remove(`${userPath(scope)}?confirm=${userId}&erase=true`);
    const changes = `/api/v1/organizations/${organizationId}/changes`;
    const { body } = await eventually(() => management.call(changes, { key: operatorToken }), {
      until: (answer) => !JSON.stringify(answer.body).includes(email),
    });
    expect(
      body.changes.find(({ action }: { action: string }) => action === "granted").after,
    ).toEqual({ subject, role: "admin", scope: inOrganization });
    expect(await management.sql`select from identities where email = ${email}`).toHaveLength(0);
  });
});

describe("a service user", () => {
  it("has its kind in every response, and never a person", async () => {
    const { id } = await given.organization();
    const users = `/api/v1/organizations/${id}/users`;
    const body = { email: "robot@example.com", kind: "service" };
    const created = await management.call(users, { method: "POST", key: operatorToken, body });
    expect(created.body).toMatchObject({ kind: "service", signs_in: false });
    const listed = await management.call(users, { key: operatorToken });
    expect(listed.body.users).toEqual([created.body]);
    const person = await given.user(id);
    expect(person).toMatchObject({ kind: "person", signs_in: false });
  });
});
