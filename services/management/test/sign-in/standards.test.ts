import { createHash } from "node:crypto";
import { connectAsSuperuser } from "@halyard/testing";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Claims, clientId, givenIssuer } from "./given-issuer.ts";
import { type Browser, createBrowser, openSignIn, seedOrganization } from "./sign-in-fixture.ts";

/**
 * Tests the client by section of RFC 9700 (best current practice for OAuth 2.0 security) and of the OpenID Connect Basic
 * Client Implementer's Guide 1.0 ("Basic"), a part of OpenID Connect Core 1.0 ("Core"). Other files have these sections:
 *
 * | Sections | File |
 * |---|---|
 * | RFC 9700, 2.1, 4.1, 4.2, 4.4, 4.5, 4.7, 4.11 | `forged-responses.test.ts` |
 * | Basic 2.1.5, 2.2, 2.3.2, 2.5.3 = Core 3.1.2.6, 3.1.3.7, 5.3, 5.7 | `forged-responses.test.ts` |
 * | RFC 9700, 2.6; Basic 6: TLS | `settings.test.ts` |
 * | Basic 2.1.3, 2.1.4: login and consent of a real provider | `whole-flow.test.ts` |
 * | Back-Channel Logout 1.0 | `backchannel-logout.test.ts` |
 *
 * These sections do not apply:
 *
 * | Sections | Reason |
 * |---|---|
 * | RFC 9700, 2.1.2, 4.3.2: implicit grant | Only codes are requested. |
 * | 2.2.1, 4.10: sender-constrained access tokens | An access token is used once, for UserInfo, and then forgotten. |
 * | 2.2.2, 4.14: refresh tokens | The scope `offline_access` is not requested, and no refresh token is stored. |
 * | 2.4: passwords of the resource owner | There are no passwords. |
 * | 4.15: clients that imitate users | No token of a client is accepted. A user's id is never a name that a client chose. |
 * | 4.16: clickjacking | The page of the provider is the provider's. No website can frame the dashboard. |
 * | Basic 2.5.1, 2.5.2: addresses, languages | These claims are not read. |
 * | Basic 7: privacy | The scopes are those of the operator. Only address, name and groups are read. |
 */
const issuer = await givenIssuer();
const signIn = await openSignIn(issuer.url);
await seedOrganization(signIn, "ada@example.com");
afterAll(async () => {
  await signIn.close();
  await issuer.close();
});

let browser: Browser;
beforeEach(() => {
  browser = signIn.browser();
  issuer.state.calls = [];
});
afterEach(() => {
  issuer.state.override = undefined;
  issuer.state.userInfo = undefined;
});

/** Returns from the provider with an id token of these claims. */
async function finish(
  { state, nonce }: { state: string; nonce: string },
  { changes = {}, parameters = {} }: { changes?: Claims; parameters?: Record<string, string> } = {},
) {
  issuer.state.idToken = await issuer.sign(issuer.claims(nonce, changes));
  return browser.callback({ code: "a", state, iss: issuer.url, ...parameters });
}

/** Signs in with claims that are completed from UserInfo. */
async function signInWithUserInfo() {
  const email = { email: "ada@example.com", email_verified: true };
  issuer.state.userInfo = { sub: "ada-subject", ...email };
  return finish(await browser.begin(), { changes: { email: undefined } });
}

const invalid = { problem: "invalid_response" };
const isCalled = (path: string) => issuer.state.calls.some(({ request }) => request.includes(path));

describe("RFC 9700, 2.1.1: authorization code grant", () => {
  it("creates a new challenge for each sign-in, and sends its verifier", async () => {
    const attempts = [await browser.begin(), await browser.begin()];
    const challenges = attempts.map(({ location }) => location.searchParams.get("code_challenge"));
    expect(new Set(challenges).size).toBe(2);
    for (const [index, attempt] of attempts.entries()) {
      expect(await finish(attempt)).toMatchObject({ problem: null });
      const verifier = issuer.state.tokenRequest.get("code_verifier") ?? "";
      const challenge = createHash("sha256").update(verifier).digest("base64url");
      expect(challenge).toBe(challenges[index]);
    }
  });
});

describe("RFC 9700, 2.3 and 4.9: access tokens", () => {
  it("sends the access token to UserInfo alone", async () => {
    expect(await signInWithUserInfo()).toMatchObject({ problem: null });
    const bearers = issuer.state.calls.filter(({ authorization = "" }) =>
      authorization.includes("secret-access"),
    );
    expect(bearers).toEqual([{ request: "GET /userinfo", authorization: "Bearer secret-access" }]);
  });

  it("stores neither the access token nor the code", async () => {
    const code = "a-code-that-is-not-stored";
    expect(await finish(await browser.begin(), { parameters: { code } })).toMatchObject({
      problem: null,
    });
    const sql = connectAsSuperuser(signIn.adminUrl, "management");
    const tables = await sql<{ name: string }[]>`
      select table_name as name from information_schema.tables where table_schema = 'management'`;
    const contents = await Promise.all(
      tables.map(async ({ name }) => {
        const rows = await sql`select to_jsonb(stored)::text as row from ${sql(name)} as stored`;
        return rows.map(({ row }) => row).join("\n");
      }),
    );
    await sql.end();
    expect(contents.join("\n")).toContain("ada-subject");
    for (const secret of ["secret-access", code]) expect(contents.join("\n")).not.toContain(secret);
  });
});

describe("RFC 9700, 2.5: client authentication", () => {
  it("sends the secret in the header of the token request alone", async () => {
    const attempt = await browser.begin();
    await finish(attempt);
    const { authorization = "" } =
      issuer.state.calls.find(({ request }) => request === "POST /token") ?? {};
    const [, encoded = ""] = /^Basic (.+)$/.exec(authorization) ?? [];
    const credentials = new URLSearchParams(`is=${Buffer.from(encoded, "base64")}`).get("is");
    expect(credentials).toBe(`${clientId}:a client's secret`);
    expect(issuer.state.tokenRequest.has("client_secret")).toBe(false);
    expect(attempt.location.href).not.toContain("secret");
  });
});

describe("RFC 9700, 2.6 and 4.8: metadata, and the downgrade of PKCE", () => {
  it("uses the endpoints of the metadata, and S256 although the metadata lacks it", async () => {
    const other = await givenIssuer();
    other.state.metadata = {
      authorization_endpoint: `${other.url}/another/path`,
      code_challenge_methods_supported: ["plain"],
    };
    const downgraded = await openSignIn(other.url);
    const { location } = await downgraded.browser().begin();
    expect(location.origin + location.pathname).toBe(`${other.url}/another/path`);
    expect(location.searchParams.get("code_challenge_method")).toBe("S256");
    expect(location.searchParams.get("code_challenge")).toMatch(/^[\w-]{43}$/);
    await downgraded.close();
    await other.close();
  });
});

describe("RFC 9700, 4.3.1: codes in the history of the browser", () => {
  it("leaves the callback for a page whose address has no code and no state", async () => {
    const { page } = await finish(await browser.begin("?return_to=/flags"));
    expect(page.href).toBe(`${signIn.url}/flags`);
    const failed = await finish(await browser.begin(), { changes: { aud: "another" } });
    expect([...failed.page.searchParams.keys()]).toEqual(["problem", "return_to"]);
  });
});

describe("RFC 9700, 4.6: injected access tokens", () => {
  it("accepts no token from the browser", async () => {
    const { state, nonce } = await browser.begin();
    const id_token = await issuer.sign(issuer.claims(nonce));
    const tokens = { access_token: "stolen", token_type: "bearer", id_token };
    expect(await browser.callback({ ...tokens, state, iss: issuer.url })).toMatchObject(invalid);
    expect(browser.hasSession()).toBe(false);
    expect([isCalled("/token"), isCalled("/userinfo")]).toEqual([false, false]);
  });
});

describe("RFC 9700, 4.12: redirects", () => {
  it("redirects with 303, so that a browser repeats no form", async () => {
    const started = await browser.request("/auth/oidc/start");
    const rejected = await browser.request("/auth/oidc/callback?code=a&state=b");
    const { state, nonce } = await browser.begin();
    issuer.state.idToken = await issuer.sign(issuer.claims(nonce));
    const query = new URLSearchParams({ code: "a", state, iss: issuer.url });
    const finished = await browser.request(`/auth/oidc/callback?${query}`);
    expect([started, rejected, finished].map(({ status }) => status)).toEqual([303, 303, 303]);
  });
});

describe("RFC 9700, 4.13: reverse proxies", () => {
  it("takes the address of the installation from its setting, and from no header", async () => {
    const headers = {
      ...{ "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" },
      forwarded: "host=evil.example;proto=https",
    };
    const { headers: answer } = await browser.request("/auth/oidc/start", { headers });
    const location = new URL(answer.get("location") ?? "");
    expect(location.searchParams.get("redirect_uri")).toBe(`${signIn.url}/auth/oidc/callback`);
    expect(answer.getSetCookie().join()).not.toMatch(/secure|domain/i);
  });
});

describe("RFC 9700, 4.17: communication in the browser", () => {
  it("receives the response in the query of a redirect alone", async () => {
    const { location, state } = await browser.begin();
    expect(location.searchParams.has("response_mode")).toBe(false);
    const body = new URLSearchParams({ code: "a", state, iss: issuer.url });
    const posted = await browser.request("/auth/oidc/callback", { method: "POST", body });
    expect(posted.status).toBe(404);
    expect(isCalled("/token")).toBe(false);
  });
});

describe("Basic 2.1.1.1 and 2.4 (Core 3.1.2.1 and 5.4): the request", () => {
  it("requests a code, with exactly the configured scopes", async () => {
    const { location, state, nonce } = await browser.begin();
    const { code_challenge: _, ...parameters } = Object.fromEntries(location.searchParams);
    expect(parameters).toEqual({
      ...{ response_type: "code", client_id: clientId, scope: "openid email profile" },
      ...{ redirect_uri: `${signIn.url}/auth/oidc/callback`, code_challenge_method: "S256" },
      ...{ state, nonce },
    });
    expect([state, nonce].every((text) => /^[\w-]{43}$/.test(text))).toBe(true);
  });

  it("requests another login to confirm a session", async () => {
    await finish(await browser.begin());
    const { location } = await browser.begin("?confirm=1");
    expect(location.searchParams.get("prompt")).toBe("login");
    expect(location.searchParams.get("max_age")).toBe("0");
  });

  it.each([
    ["a choice among accounts", "select_account", undefined, "select_account"],
    ["it from a provider that lists it", "select_account", ["select_account"], "select_account"],
    ["a login from a provider that lists others", "select_account", ["none", "login"], "login"],
    ["nothing from a provider that lists neither", "select_account", ["none"], null],
    ["no other prompt of a link", "none", undefined, null],
  ])("requests %s", async (_, prompt, supported, requested) => {
    issuer.state.metadata = { prompt_values_supported: supported };
    const { url, close } = await openSignIn(issuer.url);
    const { location } = await createBrowser(url).begin(`?prompt=${prompt}`);
    expect(location.searchParams.get("prompt")).toBe(requested);
    issuer.state.metadata = {};
    await close();
  });
});

describe("Basic 2.1.6 (Core 3.1.3): tokens", () => {
  it("sends the code with the redirect address of the request", async () => {
    const attempt = await browser.begin();
    await finish(attempt, { parameters: { code: "the code" } });
    expect(Object.fromEntries(issuer.state.tokenRequest)).toMatchObject({
      ...{ grant_type: "authorization_code", code: "the code" },
      redirect_uri: attempt.location.searchParams.get("redirect_uri"),
    });
  });

  it.each([
    ["another type of token", { token_type: "mac" }],
    ["no type of token", { token_type: undefined }],
    ["no access token", { access_token: undefined }],
  ])("rejects a response with %s", async (_, changes) => {
    const attempt = await browser.begin();
    const id_token = await issuer.sign(issuer.claims(attempt.nonce));
    const tokens = { access_token: "secret-access", token_type: "Bearer", id_token };
    issuer.state.override = (request, response) => {
      if (request.url !== "/token") return false;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...tokens, ...changes }));
      return true;
    };
    const { problem } = await finish(attempt);
    expect(problem).not.toBeNull();
    expect(browser.hasSession()).toBe(false);
  });
});

describe("Basic 2.3.3 (Core 5.3.3): errors of UserInfo", () => {
  it("rejects a sign-in whose access token UserInfo rejects", async () => {
    issuer.state.override = (request, response) => {
      if (request.url !== "/userinfo") return false;
      response.writeHead(401, { "www-authenticate": 'Bearer error="invalid_token"' }).end();
      return true;
    };
    expect(await signInWithUserInfo()).toMatchObject(invalid);
    expect(browser.hasSession()).toBe(false);
  });
});

describe("Basic 4 (Core 14): comparison of texts", () => {
  it("compares subjects exactly", async () => {
    expect(await finish(await browser.begin())).toMatchObject({ problem: null });
    const changes = { sub: "Ada-subject" };
    expect(await finish(await browser.begin(), { changes })).toMatchObject({
      problem: "other_identity",
    });
  });

  it("compares the issuer exactly", async () => {
    const iss = `${issuer.url}/`;
    for (const given of [{ parameters: { iss } }, { changes: { iss } }])
      expect(await finish(await browser.begin(), given)).toMatchObject(invalid);
  });
});
