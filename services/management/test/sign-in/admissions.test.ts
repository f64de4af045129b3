import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { operatorToken } from "../management-fixture.ts";
import { type Claims, givenIssuer } from "./given-issuer.ts";
import { openSignIn, personOf, seedOrganization } from "./sign-in-fixture.ts";

/** Tests how people join organizations by signing in, and what the audit log and other processes learn of it. */
const issuer = await givenIssuer();
const autoJoin = { organizationId: uuidv7(), domains: ["example.com"] };
const signIn = await openSignIn(issuer.url, {
  admission: { autoJoin, groupsOrganizations: "all" },
});
autoJoin.organizationId = (await seedOrganization(signIn)).organizationId;
afterAll(async () => {
  await signIn.close();
  await issuer.close();
});

/** Signs in an account with these claims. By default, nothing admits its address. */
async function signInAs(sub: string, claims: Claims = {}, browser = signIn.browser()) {
  const { state, nonce } = await browser.begin();
  const email = `${sub}@elsewhere.example`;
  issuer.state.idToken = await issuer.sign(issuer.claims(nonce, { sub, email, ...claims }));
  const { problem } = await browser.callback({ code: "a", state, iss: issuer.url });
  return { problem, browser };
}

/** Gives a group a role in a new organization. Returns the id of the organization. */
async function givenMappedGroup(group: string): Promise<string> {
  const { organizationId } = await seedOrganization(signIn);
  await signIn.sql`
    insert into grants (id, organization_id, group_name, role, created_at)
    values (${uuidv7()}, ${organizationId}, ${group}, 'editor', now())`;
  return organizationId;
}

const usersOf = (organizationId: string) => signIn.sql<
  { id: string; email: string; name: string | null; governed: boolean }[]
>`
  select id, email, name, governed from users
  where organization_id = ${organizationId} and deleted_at is null
  order by id`;

/** Returns the newest actions of an organization, oldest first. */
async function auditOf(organizationId: string) {
  const path = `/api/v1/organizations/${organizationId}/changes`;
  const { body } = await signIn.call(path, { key: operatorToken });
  return body.changes.toReversed();
}

const memberOf = async (browser: ReturnType<typeof signIn.browser>, organizationId: string) => {
  const session = await signIn.sessionOf(browser);
  return session && signIn.people.memberOf(session, organizationId);
};

describe("given an organization that people of a domain join", () => {
  it("makes a new person a viewer there, and records it", async () => {
    const { problem, browser } = await signInAs("grace", { email: "grace@example.com" });
    expect(problem).toBeNull();
    const [user] = await usersOf(autoJoin.organizationId);
    expect(user).toMatchObject({ email: "grace@example.com", name: "Ada", governed: true });
    expect(await memberOf(browser, autoJoin.organizationId)).toMatchObject({
      userId: user?.id,
      grants: [{ role: "viewer" }],
    });
    const actor = { id: user?.id, email: "grace@example.com", via: "oidc" };
    expect(await auditOf(autoJoin.organizationId)).toMatchObject([
      { action: "user_created", actor, user_id: user?.id },
      { action: "granted", actor, after: { role: "viewer" } },
      { action: "signed_in", actor, user_id: user?.id },
    ]);
  });

  it.each([
    ["an address of another domain", { email: "eve@example.com.evil.example" }, "no_account"],
    [
      "an address that is not verified",
      { email: "eve@example.com", email_verified: false },
      "address_not_verified",
    ],
  ])("admits nobody with %s", async (_, claims, problem) => {
    expect(await signInAs("eve", claims)).toMatchObject({ problem });
  });

  it("does not give a role to a user who exists, whose keys would lose rights", async () => {
    const { organizationId } = autoJoin;
    await signIn.sql`
      insert into users (id, organization_id, email, created_at)
      values (${uuidv7()}, ${organizationId}, 'Old@example.com', now())`;
    expect(await signInAs("old", { email: "old@example.com" })).toMatchObject({ problem: null });
    const users = await usersOf(organizationId);
    expect(users.find(({ email }) => email === "Old@example.com")).toMatchObject({
      governed: false,
    });
    expect(users.filter(({ email }) => email.toLowerCase() === "old@example.com")).toHaveLength(1);
  });

  it("creates one user for simultaneous sign-ins of a new account", async () => {
    const browsers = [1, 2, 3].map(() => signIn.browser());
    const begun = await Promise.all(browsers.map((browser) => browser.begin()));
    // The code selects the id token, which contains the nonce of one sign-in.
    const tokens = await Promise.all(
      begun.map(({ nonce }) =>
        issuer.sign(issuer.claims(nonce, { sub: "many", email: "many@example.com", groups: [] })),
      ),
    );
    issuer.state.tokenFor = (code) => tokens[Number(code)];
    const results = await Promise.all(
      browsers.map((browser, n) =>
        browser.callback({ code: String(n), state: begun[n]?.state ?? "", iss: issuer.url }),
      ),
    );
    issuer.state.tokenFor = undefined;
    expect(results.map(({ problem }) => problem)).toEqual([null, null, null]);
    const users = await usersOf(autoJoin.organizationId);
    expect(users.filter(({ email }) => email === "many@example.com")).toHaveLength(1);
  });
});

describe("given groups with roles", () => {
  it("admits a member of a group without an invitation", async () => {
    const organizationId = await givenMappedGroup("developers");
    const { problem, browser } = await signInAs("linus", { groups: ["developers", "others"] });
    expect(problem).toBeNull();
    expect(await memberOf(browser, organizationId)).toBeDefined();
    expect(await usersOf(organizationId)).toMatchObject([{ governed: false }]);
  });

  it("reads the groups of UserInfo if the id token lacks them", async () => {
    const organizationId = await givenMappedGroup("readers");
    issuer.state.userInfo = { sub: "ken", groups: ["readers"] };
    const { browser } = await signInAs("ken");
    issuer.state.userInfo = undefined;
    expect(await memberOf(browser, organizationId)).toBeDefined();
  });

  it("keeps the groups of this sign-in only", async () => {
    await givenMappedGroup("night-shift");
    const first = await signInAs("rob", { groups: ["night-shift"] });
    const second = await signInAs("rob", { groups: [] }, signIn.browser());
    expect((await signIn.sessionOf(first.browser))?.groups).toEqual(["night-shift"]);
    expect((await signIn.sessionOf(second.browser))?.groups).toEqual([]);
  });

  it.each([
    ["absent", {}],
    ["empty", { groups: [] }],
    ["of nobody's mapping", { groups: ["unmapped"] }],
  ])("admits nobody whose groups are %s", async (_, claims) => {
    expect(await signInAs("nobody", claims)).toMatchObject({ problem: "no_account" });
  });

  it("rejects groups by reference, and says so", async () => {
    const claims = { _claim_names: { groups: "src1" }, email: "ref@example.com" };
    expect(await signInAs("ref", claims)).toMatchObject({ problem: "groups_by_reference" });
    expect((await usersOf(autoJoin.organizationId)).map(({ email }) => email)).not.toContain(
      "ref@example.com",
    );
  });
});

describe("given users of several organizations", () => {
  it("links the unlinked user of each, and changes no other", async () => {
    const one = await seedOrganization(signIn, "alan@elsewhere.example", "other@elsewhere.example");
    const two = await seedOrganization(signIn, "Alan@Elsewhere.example");
    expect(await signInAs("alan")).toMatchObject({ problem: null });
    const person = await personOf(signIn, one.userIds[0]);
    expect(person).not.toBeNull();
    expect(await personOf(signIn, two.userIds[0])).toBe(person);
    expect(await personOf(signIn, one.userIds[1])).toBeNull();
    expect(
      (await auditOf(two.organizationId)).map(({ action }: { action: string }) => action),
    ).toEqual(["user_linked", "signed_in"]);
  });

  it("never links a service user", async () => {
    const { userIds } = await seedOrganization(signIn, "robot@elsewhere.example");
    await signIn.sql`update users set kind = 'service' where id = ${userIds[0] ?? ""}`;
    expect(await signInAs("robot")).toMatchObject({ problem: "no_account" });
  });

  it("does not take over a user by an address that differs in Unicode only", async () => {
    const { userIds } = await seedOrganization(signIn, "kay@elsewhere.example");
    const claims = { email: "\u212Aay@elsewhere.example" };
    expect(await signInAs("kelvin", claims)).toMatchObject({ problem: "no_account" });
    expect(await personOf(signIn, userIds[0])).toBeNull();
  });
});

describe("given a confirmation", () => {
  /** Signs in, and confirms the session with these claims. */
  async function confirmWith(claims: (startedAt: number) => Claims) {
    const sub = `confirmer-${uuidv7()}`;
    await seedOrganization(signIn, `${sub}@elsewhere.example`);
    const { browser } = await signInAs(sub);
    const { state, nonce, location } = await browser.begin("?confirm=1&return_to=/keys");
    expect(location.searchParams.get("prompt")).toBe("login");
    const now = Math.floor(Date.now() / 1_000);
    issuer.state.idToken = await issuer.sign(issuer.claims(nonce, { sub, ...claims(now) }));
    const before = new Map(browser.cookies);
    const result = await browser.callback({ code: "a", state, iss: issuer.url });
    const { confirmedAtMs = 0, signedInAtMs = 0 } = (await signIn.sessionOf(browser)) ?? {};
    return { ...result, isConfirmed: confirmedAtMs > signedInAtMs, before, after: browser.cookies };
  }

  it("confirms the same session after the person has authenticated again", async () => {
    const confirmed = await confirmWith((now) => ({ auth_time: now }));
    expect(confirmed).toMatchObject({ problem: null, isConfirmed: true });
    expect(confirmed.page.pathname).toBe("/keys");
    expect(confirmed.after).toEqual(confirmed.before);
  });

  it.each([
    ["the provider does not say when the person has authenticated", () => ({})],
    ["the person has authenticated earlier", (now: number) => ({ auth_time: now - 60 })],
    ["another person has authenticated", (now: number) => ({ auth_time: now, sub: "grace" })],
    ["a new account has authenticated", (now: number) => ({ auth_time: now, sub: "unknown" })],
  ])("confirms nothing if %s", async (_, claims) => {
    expect(await confirmWith(claims)).toMatchObject({
      problem: "not_confirmed",
      isConfirmed: false,
    });
  });

  it("does not begin without a session", async () => {
    const { location } = await signIn.browser().begin("?confirm=1");
    expect(location.searchParams.get("problem")).toBe("expired");
  });
});
