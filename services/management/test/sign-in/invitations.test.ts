import { afterAll, describe, expect, it } from "@jest/globals";
import { openPeople } from "./person-fixture.ts";

/** Tests invitations, from the link to a signed-in person. */

const people = await openPeople();
afterAll(() => people.close());

const invitationsOf = (organizationId: string) =>
  `/api/v1/organizations/${organizationId}/invitations`;
const accept = (browser: ReturnType<typeof people.browser>, code: string) =>
  browser.send("/api/v1/invitations/accept", { body: { code } });
const read = (code: string) => people.browser().send("/auth/invitation/read", { body: { code } });

describe("an invitation", () => {
  it("creates the user with the role, and returns the link once", async () => {
    const { id } = await people.organization();
    const { url, user } = await people.invite(id, "grace@example.com", "admin");
    expect(url).toMatch(/^http:\/\/localhost:\d+\/sign-in#invitation=[A-Za-z0-9_-]{43}$/);
    expect(user).toMatchObject({ email: "grace@example.com", signs_in: false });
    const { body } = await people.operator(invitationsOf(id));
    expect(body.invitations).toMatchObject([{ user: { id: user.id } }]);
    expect(JSON.stringify(body)).not.toContain("url");
    const grants = await people.operator(`/api/v1/organizations/${id}/grants`);
    expect(grants.body.grants).toMatchObject([{ subject: { user_id: user.id }, role: "admin" }]);
  });

  it("shows the organization, the address and the ways to sign in, and stays open", async () => {
    const organization = await people.organization();
    const { code } = await people.invite(organization.id, "grace@example.com");
    for (const { status, body } of [await read(code), await read(code)]) {
      expect(status).toBe(200);
      expect(body).toEqual({
        organization: { id: organization.id, name: organization.name },
        email: "grace@example.com",
        methods: { oidc: false, passkey: true, operator_link: true, key: true },
      });
    }
  });

  it("is used up by a registration, which signs in", async () => {
    const { id } = await people.organization();
    const { code } = await people.invite(id, "grace@example.com");
    const browser = people.browser();
    expect((await browser.register(code)).status).toBe(204);
    const { body } = await browser.get("/api/v1/session");
    expect(body).toMatchObject({ organizations: [{ id, role: "editor" }] });
    expect((await read(code)).status).toBe(404);
    expect((await people.operator(invitationsOf(id))).body.invitations).toEqual([]);
  });

  it("stays open after a registration that is rejected", async () => {
    const { id } = await people.organization();
    const { code } = await people.invite(id, "grace@example.com");
    const failed = await people.browser().register(code, { verifiesUser: false });
    expect(failed.status).toBe(401);
    expect((await people.browser().register(code)).status).toBe(204);
  });

  it("works for one of two simultaneous registrations", async () => {
    const { id } = await people.organization();
    const { code } = await people.invite(id, "grace@example.com");
    const browsers = [people.browser(), people.browser()];
    const challenges = await Promise.all(
      browsers.map((browser) => browser.challenge("register", code)),
    );
    const answers = await Promise.all(
      browsers.map((browser, at) => browser.registerWith(challenges[at] ?? "", code)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404]);
  });

  it("joins a further organization for a signed-in person", async () => {
    const { browser, organizationId } = await people.member();
    const { id } = await people.organization();
    const { code, user } = await people.invite(id, "ada@example.org", "viewer");
    const accepted = await accept(browser, code);
    expect(accepted).toMatchObject({
      status: 200,
      body: { organization_id: id, user_id: user.id },
    });
    const { body } = await browser.get("/api/v1/session");
    expect(body.organizations.map((joined: { id: string }) => joined.id).toSorted()).toEqual(
      [organizationId, id].toSorted(),
    );
    expect((await accept(browser, code)).status).toBe(404);
  });

  it("is not accepted by a person with a user in the organization, and stays open", async () => {
    const { browser, organizationId } = await people.member();
    const { code } = await people.invite(organizationId, "grace@example.com");
    const answer = await accept(browser, code);
    expect([answer.status, answer.body.error.code]).toEqual([409, "CONFLICT_001"]);
    expect((await read(code)).status).toBe(200);
  });

  it("replaces the earlier invitation of the user", async () => {
    const { id } = await people.organization();
    const first = await people.invite(id, "grace@example.com");
    const second = await people.invite(id, "Grace@example.com");
    expect((await read(first.code)).status).toBe(404);
    expect((await read(second.code)).status).toBe(200);
    expect((await people.operator(invitationsOf(id))).body.invitations).toHaveLength(1);
  });

  it("is rejected for a user with a person", async () => {
    const { organizationId } = await people.member();
    const body = { email: "ada@example.com", role: "admin" };
    const answer = await people.operator(invitationsOf(organizationId), body);
    expect([answer.status, answer.body.error.code]).toEqual([409, "CONFLICT_001"]);
  });

  it("ends when it is withdrawn", async () => {
    const { id } = await people.organization();
    const { code, id: invitationId } = await people.invite(id, "grace@example.com");
    const path = `${invitationsOf(id)}/${invitationId}`;
    expect((await people.operator(path, undefined, "DELETE")).status).toBe(204);
    expect((await read(code)).status).toBe(404);
    expect((await people.operator(path, undefined, "DELETE")).status).toBe(404);
    expect(
      (
        await people.browser().send("/auth/passkey/options", {
          body: { purpose: "register", invitation: code },
        })
      ).status,
    ).toBe(404);
  });

  it("ends with the user", async () => {
    const { id } = await people.organization();
    const { code, user } = await people.invite(id, "grace@example.com");
    const path = `/api/v1/organizations/${id}/users/${user.id}?confirm=${user.id}`;
    expect((await people.operator(path, undefined, "DELETE")).status).toBe(204);
    expect((await read(code)).status).toBe(404);
    expect((await people.operator(invitationsOf(id))).body.invitations).toEqual([]);
  });

  it("belongs to one organization", async () => {
    const [one, other] = [await people.organization(), await people.organization()];
    const { id: invitationId } = await people.invite(one.id, "grace@example.com");
    const path = `${invitationsOf(other.id)}/${invitationId}`;
    expect((await people.operator(path, undefined, "DELETE")).status).toBe(404);
  });
});
