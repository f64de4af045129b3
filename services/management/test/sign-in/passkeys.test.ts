import { eventually, signWithPasskey } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { openPeople } from "./person-fixture.ts";

/** Tests sign-in with passkeys against a software authenticator, over HTTP. */

const people = await openPeople();
afterAll(() => people.close());

const isSignedIn = async ({ get }: { get: (path: string) => Promise<{ status: number }> }) =>
  (await get("/api/v1/session")).status === 200;
const verify = (purpose: string, credential: unknown) =>
  people.browser().send("/auth/passkey/verify", { body: { purpose, credential } });

describe("a registered passkey", () => {
  it("signs in, in a new browser", async () => {
    const { passkey, organizationId, userId } = await people.member();
    const browser = people.browser();
    expect((await browser.sign("sign_in", passkey)).status).toBe(204);
    const { body } = await browser.get("/api/v1/session");
    expect(body).toMatchObject({
      person: { email: "ada@example.com" },
      organizations: [{ id: organizationId, user_id: userId, role: "editor" }],
      signed_in_by: "passkey",
    });
  });

  it("begins a session with another id at every sign-in, which ends the previous one", async () => {
    const { passkey, browser } = await people.member();
    const before = [...browser.cookies.values()];
    await browser.sign("sign_in", passkey);
    expect([...browser.cookies.values()]).not.toEqual(before);
    expect((await browser.get("/api/v1/sessions")).body.sessions).toHaveLength(1);
  });

  it("rejects a response that was used before", async () => {
    const { passkey } = await people.member();
    const { credential } = await people.browser().sign("sign_in", passkey);
    expect((await verify("sign_in", credential)).body.error.code).toBe("NOT_FOUND_001");
  });

  it("rejects a counter that does not increase, and logs it", async () => {
    const { passkey } = await people.member();
    await people.browser().sign("sign_in", passkey);
    passkey.counter = 0;
    const answer = await people.browser().sign("sign_in", passkey);
    expect([answer.status, answer.body.error.code]).toEqual([401, "AUTH_001"]);
    expect(people.lines.some((line) => line.includes("counter"))).toBe(true);
  });

  it.each([
    ["another origin", { origin: "http://localhost.example.com" }],
    ["another relying party", { rpId: "example.com" }],
    ["a user who was not verified", { verifiesUser: false }],
  ])("rejects the response of %s", async (_, change) => {
    const { passkey } = await people.member();
    const browser = people.browser();
    const answer = await browser.sign("sign_in", passkey, change);
    expect([answer.status, answer.body.error.code]).toEqual([401, "AUTH_001"]);
    expect(await isSignedIn(browser)).toBe(false);
  });

  it("rejects a signature of another passkey", async () => {
    const [one, other] = [await people.member(), await people.member()];
    const forged = { ...one.passkey, privateKey: other.passkey.privateKey };
    expect((await people.browser().sign("sign_in", forged)).status).toBe(401);
  });

  it("uses up the challenge with a response that is rejected", async () => {
    const { passkey } = await people.member();
    const browser = people.browser();
    const challenge = await browser.challenge("sign_in");
    const { origin, hostname: rpId } = people.publicUrl;
    const wrong = signWithPasskey(passkey, { challenge, origin: "https://example.com", rpId });
    const right = signWithPasskey(passkey, { challenge, origin, rpId });
    expect((await verify("sign_in", wrong)).status).toBe(401);
    expect((await verify("sign_in", right)).status).toBe(404);
  });

  it("rejects a challenge of another purpose", async () => {
    const { passkey, browser } = await people.member();
    const challenge = await browser.challenge("confirm");
    const { origin, hostname: rpId } = people.publicUrl;
    const credential = signWithPasskey(passkey, { challenge, origin, rpId });
    expect((await verify("sign_in", credential)).status).toBe(404);
  });

  it("does not sign in after its person has removed it", async () => {
    const { passkey, browser } = await people.member();
    const removed = await browser.send(`/api/v1/passkeys/${passkey.id}`, { method: "DELETE" });
    expect(removed.status).toBe(204);
    expect((await people.browser().sign("sign_in", passkey)).status).toBe(401);
    expect(await isSignedIn(browser)).toBe(true);
  });
});

describe("confirming a session", () => {
  it("moves the time of the confirmation", async () => {
    const { passkey, browser } = await people.member();
    const before = (await browser.get("/api/v1/session")).body;
    expect((await browser.sign("confirm", passkey)).status).toBe(204);
    const after = (await browser.get("/api/v1/session")).body;
    expect(after.signed_in_at).toBe(before.signed_in_at);
    expect(after.confirmed_at > before.confirmed_at).toBe(true);
  });

  it("rejects the passkey of another person", async () => {
    const [one, other] = [await people.member(), await people.member()];
    const answer = await one.browser.sign("confirm", other.passkey);
    expect([answer.status, answer.body.error.code]).toEqual([401, "AUTH_001"]);
  });

  it("needs a session", async () => {
    const answer = await people.browser().send("/auth/passkey/options", {
      body: { purpose: "confirm" },
    });
    expect(answer.status).toBe(401);
  });
});

describe("registering a passkey while signed in", () => {
  it("adds it to the passkeys of the person", async () => {
    const { browser, organizationId } = await people.member();
    const { status, passkey } = await browser.register();
    expect(status).toBe(204);
    const { body } = await browser.get("/api/v1/passkeys");
    expect(body.passkeys.map(({ id }: { id: string }) => id)).toContain(passkey.id);
    const path = `/api/v1/organizations/${organizationId}/changes?action=passkey_added`;
    expect((await people.operator(path)).body.changes).toHaveLength(2);
  });

  it("needs a sign-in or a confirmation within 30 minutes", async () => {
    const { browser, organizationId, userId } = await people.member();
    await people.sql`
      update people_entries set content = jsonb_set(content::jsonb, '{confirmed_at}',
        '"2026-01-01T00:00:00.000Z"')::text, version = version + 1, sequence = null
      where key in (
        select 'session.' || sessions.id from sessions join users using (person_id)
        where users.id = ${userId} and users.organization_id = ${organizationId})`;
    await eventually(async () => (await browser.get("/api/v1/session")).body.confirmed_at, {
      until: (at) => at === "2026-01-01T00:00:00.000Z",
    });
    const answer = await browser.send("/auth/passkey/options", { body: { purpose: "register" } });
    expect([answer.status, answer.body.error.code]).toEqual([403, "AUTH_003"]);
  });

  it("rejects a registration without user verification", async () => {
    const { browser } = await people.member();
    expect((await browser.register(undefined, { verifiesUser: false })).status).toBe(401);
  });
});

describe("requests of other sites", () => {
  it.each([
    ["without `Origin` and `Sec-Fetch-Site`", null],
    ["of another origin", "https://example.com"],
  ])("are rejected %s", async (_, origin) => {
    const answer = await people.browser().send("/auth/passkey/options", {
      ...{ body: { purpose: "sign_in" }, origin },
    });
    expect([answer.status, answer.body.error.code]).toEqual([403, "AUTH_002"]);
  });
});
