import { eventually } from "@halyard/testing";
import { client, startIdentityProvider } from "@halyard/testing/identity-provider";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { type Browser, openSignIn, personOf, seedOrganization } from "./sign-in-fixture.ts";

/** Tests signing in, confirming and signing out with a real provider, as a browser does it. */
const signIn = await openSignIn("http://127.0.0.1", { clientSecret: client.secret });
const provider = await startIdentityProvider({
  callback: `${signIn.url}/auth/oidc/callback`,
  signOut: `${signIn.url}/sign-in`,
  logout: `${signIn.url}/auth/oidc/backchannel-logout`,
});
signIn.oidc.issuer = provider.url;
const { userIds } = await seedOrganization(signIn, "ada@example.com");
afterAll(async () => {
  await signIn.close();
  await provider.close();
});

let browser: Browser;
beforeEach(async () => {
  provider.state.account = {
    accountId: "ada",
    claims: { email: "ada@example.com", email_verified: true, name: "Ada" },
  };
  browser = signIn.browser();
});

const { sessionOf } = signIn;

/** Follows redirects until a page of the dashboard. */
async function follow(target: string): Promise<URL> {
  let url = new URL(target, signIn.url);
  for (let redirects = 0; redirects < 12; redirects++) {
    const isPage = url.origin === signIn.url && !url.pathname.startsWith("/auth/");
    if (isPage) return url;
    const response = await browser.request(url.href);
    const location = response.headers.get("location");
    if (location === null) throw new Error(`${url.pathname}: ${response.status}`);
    url = new URL(location, url);
  }
  throw new Error("too many redirects");
}

const start = (query = "") => follow(`/auth/oidc/start${query}`);
const signOut = (headers: Record<string, string>) =>
  browser.request("/auth/sign-out", { method: "POST", headers });

describe("given a person with an account at the provider", () => {
  it("signs in, and returns to the page", async () => {
    expect((await start("?return_to=/flags")).href).toBe(`${signIn.url}/flags`);
    expect(await sessionOf(browser)).toMatchObject({
      personId: await personOf(signIn, userIds[0]),
      via: "oidc",
    });
  });

  it("confirms the session after another login", async () => {
    await start();
    const before = await sessionOf(browser);
    expect((await start("?confirm=1&return_to=/keys")).pathname).toBe("/keys");
    const after = await sessionOf(browser);
    expect(after?.id).toBe(before?.id);
    expect(after?.confirmedAtMs).toBeGreaterThan(before?.confirmedAtMs ?? 0);
  });

  it("is rejected if no user has the address", async () => {
    provider.state.account = {
      accountId: "eve",
      claims: { email: "eve@example.com", email_verified: true },
    };
    expect((await start()).searchParams.get("problem")).toBe("no_account");
    expect(await sessionOf(browser)).toBeUndefined();
  });
});

describe("given a sign-out", () => {
  it.each([
    ["another site", { origin: "https://evil.example" }],
    ["another port of this host", { origin: "http://127.0.0.1:1" }],
    ["another site without an origin", { "sec-fetch-site": "cross-site" }],
    ["an opaque origin", { origin: "null", "sec-fetch-site": "same-origin" }],
    ["no browser", {}],
  ])("rejects a request of %s", async (_, headers) => {
    await start();
    expect((await signOut(headers as Record<string, string>)).status).toBe(403);
    expect(await sessionOf(browser)).toBeDefined();
  });

  it("ends the session here and at the provider, which ends it in other browsers too", async () => {
    await start();
    const former = { cookies: new Map(browser.cookies) };
    const response = await signOut({ origin: signIn.url });
    const { location } = (await response.json()) as { location: string };
    expect(new URL(location).origin).toBe(provider.url);
    expect(browser.hasSession()).toBe(false);
    expect(await sessionOf(former)).toBeUndefined();
    // Signs in again at the provider without a login, until its session has ended.
    await start();
    const form = await (await browser.request(location)).text();
    const xsrf = /name="xsrf" value="(?<xsrf>[^"]+)"/.exec(form)?.groups?.xsrf ?? "";
    const confirmed = await browser.request(`${provider.url}/session/end/confirm`, {
      method: "POST",
      body: new URLSearchParams({ xsrf, logout: "yes" }),
    });
    expect(new URL(confirmed.headers.get("location") ?? "").pathname).toBe("/sign-in");
    await eventually(async () => (await sessionOf(browser)) === undefined, {
      because: "the provider has sent a logout token",
    });
  });

  it("succeeds without a session", async () => {
    const response = await signOut({ "sec-fetch-site": "same-origin" });
    expect(await response.json()).toEqual({ location: `${signIn.url}/sign-in` });
  });
});
