import { afterAll, describe, expect, it } from "@jest/globals";
import { openPeople } from "./person-fixture.ts";

/** Tests the operator's links, which sign in a user once. */

const people = await openPeople();
afterAll(() => people.close());

const use = (code: string, browser = people.browser()) =>
  browser.send("/auth/link/verify", { body: { code } });

describe("a link of the operator", () => {
  it("is an address of the sign-in page with the code in its fragment", async () => {
    const { organizationId, userId } = await people.scope();
    const path = `/api/v1/organizations/${organizationId}/sign-in-links`;
    const { body } = await people.operator(path, { user_id: userId });
    expect(body.url).toMatch(/^http:\/\/localhost:\d+\/sign-in#link=[A-Za-z0-9_-]{43}$/);
  });

  it("signs in the user, and creates its person", async () => {
    const { organizationId, userId } = await people.scope();
    const browser = people.browser();
    expect((await use(await people.link(organizationId, userId), browser)).status).toBe(204);
    const { body } = await browser.get("/api/v1/session");
    expect(body).toMatchObject({ signed_in_by: "operator", organizations: [] });
    const user = await people.operator(`/api/v1/organizations/${organizationId}/users/${userId}`);
    expect(user.body.signs_in).toBe(true);
  });

  it("signs in the same person again", async () => {
    const { browser, organizationId, userId } = await people.member();
    await use(await people.link(organizationId, userId));
    expect((await browser.get("/api/v1/sessions")).body.sessions).toMatchObject([
      { signed_in_by: "operator", current: false },
      { signed_in_by: "passkey", current: true },
    ]);
  });

  it("is in the audit log, as is the sign-in", async () => {
    const { organizationId, userId } = await people.scope();
    await use(await people.link(organizationId, userId));
    const { body } = await people.operator(`/api/v1/organizations/${organizationId}/changes`);
    expect(
      body.changes
        .slice(0, 3)
        .map(({ action }: { action: string }) => action)
        .toSorted(),
    ).toEqual(["sign_in_link_created", "signed_in", "user_linked"]);
  });

  it("works once", async () => {
    const { organizationId, userId } = await people.scope();
    const code = await people.link(organizationId, userId);
    await use(code);
    expect((await use(code)).body.error.code).toBe("NOT_FOUND_001");
  });

  it("works for one of two simultaneous requests", async () => {
    const { organizationId, userId } = await people.scope();
    const code = await people.link(organizationId, userId);
    const answers = await Promise.all([use(code), use(code)]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404]);
  });

  it("is not used up by requests that only read", async () => {
    const { organizationId, userId } = await people.scope();
    const code = await people.link(organizationId, userId);
    expect((await people.browser().get(`/auth/link/verify?code=${code}`)).status).toBe(404);
    expect((await use(code)).status).toBe(204);
  });

  it("ends after five minutes", async () => {
    const { organizationId, userId } = await people.scope();
    const code = await people.link(organizationId, userId);
    await people.sql`update one_time_codes set expires_at = now() - interval '1 second'`;
    expect((await use(code)).status).toBe(404);
  });

  it("does not exist for a service user", async () => {
    const { id } = await people.organization();
    const body = { email: "robot@example.com", kind: "service" };
    const robot = await people.operator(`/api/v1/organizations/${id}/users`, body);
    const path = `/api/v1/organizations/${id}/sign-in-links`;
    expect((await people.operator(path, { user_id: robot.body.id })).status).toBe(400);
  });

  it("needs the operator", async () => {
    const { organizationId, userId, serverKey } = await people.scope();
    const answer = await people.call(`/api/v1/organizations/${organizationId}/sign-in-links`, {
      ...{ method: "POST", key: serverKey, body: { user_id: userId } },
    });
    expect([answer.status, answer.body.error.code]).toEqual([403, "AUTH_002"]);
  });
});

describe("`SIGN_IN_BY_OPERATOR=off`", () => {
  it("removes both routes", async () => {
    const without = await openPeople({ byOperator: false });
    const { organizationId, userId } = await without.scope();
    const path = `/api/v1/organizations/${organizationId}/sign-in-links`;
    expect((await without.operator(path, { user_id: userId })).status).toBe(404);
    const code = "N3vqYc0d5Rz4mXW1b2u7kQeT9sLhJaP6oGfDiKtVyBw";
    const used = await without.browser().send("/auth/link/verify", { body: { code } });
    expect(used.status).toBe(404);
    expect((await without.browser().get("/auth/methods")).body).toEqual({
      ...{ oidc: false, passkey: true, operator_link: false, key: true, signed_in: false },
    });
    await without.close();
  });
});
