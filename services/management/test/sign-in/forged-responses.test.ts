import { afterAll, afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type Claims, givenIssuer, newKeys } from "./given-issuer.ts";
import { type Browser, openSignIn, personOf, seedOrganization } from "./sign-in-fixture.ts";

/**
 * Tests what a sign-in accepts from the browser and from the provider, by section of RFC 9700 (best current practice for
 * OAuth 2.0 security), of OpenID Connect Core 1.0 ("Core") and of its Basic Client Implementer's Guide 1.0 ("Basic").
 * `standards.test.ts` lists where each section is tested, or why it does not apply.
 */
const issuer = await givenIssuer();
const signIn = await openSignIn(issuer.url);
afterAll(async () => {
  await signIn.close();
  await issuer.close();
});

let browser: Browser;
let userId: string | undefined;
beforeEach(async () => {
  browser = signIn.browser();
  [userId] = (await seedOrganization(signIn, "ada@example.com")).userIds;
});
afterEach(async () => {
  issuer.state.override = undefined;
  issuer.state.userInfo = undefined;
  issuer.state.keys = issuer.state.published[0] ?? issuer.state.keys;
  await signIn.sql`update users set person_id = null`;
  await signIn.sql`delete from people`;
  await signIn.sql`update users set deleted_at = now()`;
});

/** Signs in with an id token of these claims. */
async function signInWith(
  changes: Claims,
  { sign = issuer.sign, parameters = {} as Record<string, string> } = {},
) {
  const { state, nonce } = await browser.begin();
  issuer.state.idToken = await sign(issuer.claims(nonce, changes));
  return browser.callback({ code: "a", state, iss: issuer.url, ...parameters });
}

const seconds = (ahead: number) => Math.floor(Date.now() / 1_000) + ahead;

describe("given a valid response", () => {
  it("signs in the user with the verified address, and returns to the page", async () => {
    const { state, nonce, location } = await browser.begin("?return_to=/flags?tab=rules");
    expect(Object.fromEntries(location.searchParams)).toMatchObject({
      response_type: "code",
      scope: "openid email profile",
      code_challenge_method: "S256",
      redirect_uri: `${signIn.url}/auth/oidc/callback`,
    });
    issuer.state.idToken = await issuer.sign(issuer.claims(nonce));
    const { page } = await browser.callback({ code: "a", state, iss: issuer.url });
    expect(page.href).toBe(`${signIn.url}/flags?tab=rules`);
    expect(browser.hasSession()).toBe(true);
    expect(await personOf(signIn, userId)).not.toBeNull();
  });

  it("writes no code, token, address or secret to the log", async () => {
    await signInWith({});
    await signInWith({ aud: "another" });
    const log = signIn.lines.join("");
    const secrets = [issuer.state.idToken, "ada@example.com", "secret-access", "a client's secret"];
    for (const secret of [...secrets, ...browser.cookies.values(), "code=", "state="])
      expect(log).not.toContain(secret);
  });
});

describe("RFC 9700, 4.1 and 4.11: redirects", () => {
  it.each(["//evil.example", "https://evil.example", "/\\evil.example"])(
    "does not return to %s",
    async (path) => {
      const { state, nonce } = await browser.begin(`?return_to=${encodeURIComponent(path)}`);
      issuer.state.idToken = await issuer.sign(issuer.claims(nonce));
      const { page } = await browser.callback({ code: "a", state, iss: issuer.url });
      expect(page.href).toBe(`${signIn.url}/`);
    },
  );
});

describe("RFC 9700, 4.2: leaks by the Referer header", () => {
  it("forbids the header and the storage of all responses", async () => {
    for (const path of ["/auth/oidc/start", "/auth/oidc/callback?code=a&state=b"]) {
      const { headers } = await browser.request(path);
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("no-store");
    }
  });
});

describe("RFC 9700, 4.4: mixed-up issuers", () => {
  it("rejects a response of another issuer, and one without an issuer", async () => {
    for (const parameters of [{ iss: "https://evil.example" }, { iss: "" }])
      expect(await signInWith({}, { parameters })).toMatchObject({ problem: "invalid_response" });
  });

  it("rejects metadata of another issuer", async () => {
    const other = await givenIssuer();
    other.state.metadata = { issuer: issuer.url };
    const misled = await openSignIn(other.url);
    const { location } = await misled.browser().begin();
    expect(location.searchParams.get("problem")).toBe("invalid_response");
    await misled.close();
    await other.close();
  });
});

describe("RFC 9700, 4.5: injected and replayed codes", () => {
  it("sends the verifier of the challenge to the token endpoint", async () => {
    await signInWith({});
    expect(issuer.state.tokenRequest.get("code_verifier")).toMatch(/^[\w-]{43}$/);
  });

  it("accepts a callback once", async () => {
    const { state, nonce } = await browser.begin();
    issuer.state.idToken = await issuer.sign(issuer.claims(nonce));
    const parameters = { code: "a", state, iss: issuer.url };
    const results = await Promise.all([browser.callback(parameters), browser.callback(parameters)]);
    expect(results.filter(({ problem }) => problem === null)).toHaveLength(1);
    expect(results.filter(({ problem }) => problem === "expired")).toHaveLength(1);
  });

  it("rejects the code of another sign-in by its nonce", async () => {
    expect(await signInWith({ nonce: "another" })).toMatchObject({ problem: "invalid_response" });
    expect(await signInWith({ nonce: undefined })).toMatchObject({ problem: "invalid_response" });
  });

  it("rejects a callback after ten minutes", async () => {
    const { state, nonce } = await browser.begin();
    issuer.state.idToken = await issuer.sign(issuer.claims(nonce));
    const { now } = signIn.clock;
    signIn.clock.now = () => new Date(Date.now() + 600_001);
    const result = await browser.callback({ code: "a", state, iss: issuer.url });
    signIn.clock.now = now;
    expect(result).toMatchObject({ problem: "expired" });
  });
});

describe("RFC 9700, 4.7: forged requests (login CSRF)", () => {
  it("rejects a callback in another browser, and keeps it for the browser that began", async () => {
    const { state, nonce } = await browser.begin();
    issuer.state.idToken = await issuer.sign(issuer.claims(nonce));
    const parameters = { code: "a", state, iss: issuer.url };
    const victim = signIn.browser();
    expect(await victim.callback(parameters)).toMatchObject({ problem: "expired" });
    await victim.begin();
    expect(await victim.callback(parameters)).toMatchObject({ problem: "expired" });
    expect(victim.hasSession()).toBe(false);
    expect(await browser.callback(parameters)).toMatchObject({ problem: null });
  });

  it.each(["", "unknown"])("rejects the state %j", async (state) => {
    await browser.begin();
    expect(await browser.callback({ code: "a", state })).toMatchObject({ problem: "expired" });
  });

  it("completes two sign-ins that one browser has begun in two tabs", async () => {
    const [first, second] = [await browser.begin(), await browser.begin()];
    for (const { state, nonce } of [first, second]) {
      issuer.state.idToken = await issuer.sign(issuer.claims(nonce));
      const { problem } = await browser.callback({ code: "a", state, iss: issuer.url });
      expect(problem).toBeNull();
    }
  });
});

describe("session fixation", () => {
  it("begins a new session with a new secret at every sign-in, and ends the previous one", async () => {
    await signInWith({});
    const before = new Map(browser.cookies);
    await signInWith({});
    const name = [...before.keys()].find((one) => one.startsWith("halyard-session-")) ?? "";
    expect(browser.cookies.get(name)).not.toBe(before.get(name));
    const [{ count }] = await signIn.sql<[{ count: number }]>`
      select count(*)::integer as count from sessions`;
    expect(count).toBe(1);
  });
});

describe("Basic 2.2 (Core 3.1.3.7): id tokens", () => {
  const invalid = { problem: "invalid_response" };

  it.each([
    ["another issuer", { iss: "https://evil.example" }],
    ["another audience", { aud: "another" }],
    ["no audience", { aud: [] }],
    ["another authorized party", { aud: ["halyard", "another"], azp: "another" }],
    ["an end in the past", { exp: seconds(-60) }],
    ["no end", { exp: undefined }],
    ["a beginning in the future", { nbf: seconds(120) }],
    ["an issue in the future", { iat: seconds(120), exp: seconds(240) }],
    ["no issue", { iat: undefined }],
    ["no subject", { sub: undefined }],
    ["a subject that is no text", { sub: 1 }],
  ] satisfies [string, Claims][])("rejects one with %s", async (_, changes) => {
    expect(await signInWith(changes)).toMatchObject(invalid);
    expect(browser.hasSession()).toBe(false);
    expect(await personOf(signIn, userId)).toBeNull();
  });

  it("rejects one without a signature (`alg: none`)", async () => {
    const sign = async (claims: Claims) => {
      const parts = [{ alg: "none" }, claims].map((part) =>
        Buffer.from(JSON.stringify(part)).toString("base64url"),
      );
      return `${parts.join(".")}.`;
    };
    expect(await signInWith({}, { sign })).toMatchObject(invalid);
  });

  it("rejects one that another key has signed under the id of the issuer's key", async () => {
    const keys = await newKeys("first");
    expect(await signInWith({}, { sign: (claims) => issuer.sign(claims, { keys }) })).toMatchObject(
      invalid,
    );
  });

  it("rejects an algorithm that the issuer does not use", async () => {
    const keys = await newKeys("other", "PS256");
    issuer.state.published.push(keys);
    const result = await signInWith({}, { sign: (claims) => issuer.sign(claims, { keys }) });
    issuer.state.published.pop();
    expect(result).toMatchObject(invalid);
  });

  it("rejects a response without an id token", async () => {
    const sign = async () => "";
    expect(await signInWith({}, { sign })).toMatchObject(invalid);
  });
});

describe("Core 10.1.1: rotation of keys", () => {
  it("accepts a new key immediately, and rejects a withdrawn one", async () => {
    await signInWith({});
    const [before] = issuer.state.published;
    const keys = await newKeys("second");
    issuer.state.published = [keys];
    const sign = (claims: Claims) => issuer.sign(claims, { keys });
    expect(await signInWith({}, { sign })).toMatchObject({ problem: null });
    expect(await signInWith({}, { sign: issuer.sign })).toMatchObject({
      problem: "invalid_response",
    });
    issuer.state.published = before ? [before] : [];
  });
});

describe("Basic 2.3.2 (Core 5.3.2): claims of UserInfo", () => {
  it("reads the address and the groups there if the id token lacks them", async () => {
    const email = "ada@example.com";
    issuer.state.userInfo = { sub: "ada-subject", email, email_verified: true };
    expect(await signInWith({ email: undefined, email_verified: undefined })).toMatchObject({
      problem: null,
    });
  });

  it("rejects the claims of another subject", async () => {
    issuer.state.userInfo = { sub: "another", email: "ada@example.com", email_verified: true };
    expect(await signInWith({ email: undefined })).toMatchObject({ problem: "invalid_response" });
  });
});

describe("Basic 2.5.3 (Core 5.7): the subject identifies an account", () => {
  it("keeps the person when the address changes", async () => {
    await signInWith({});
    const person = await personOf(signIn, userId);
    expect(await signInWith({ email: "lovelace@example.com" })).toMatchObject({ problem: null });
    expect(await personOf(signIn, userId)).toBe(person);
  });

  it("rejects another subject with the address of a linked account", async () => {
    await signInWith({});
    expect(await signInWith({ sub: "another" })).toMatchObject({ problem: "other_identity" });
  });

  it("accepts another subject after the operator has unlinked the user", async () => {
    await signInWith({});
    await signIn.sql`update users set person_id = null where id = ${userId ?? ""}`;
    expect(await signInWith({ sub: "another" })).toMatchObject({ problem: null });
  });

  it("links one of two accounts that sign in at the same time with one address", async () => {
    const accounts = await Promise.all(
      ["one", "two"].map(async (sub) => {
        const own = signIn.browser();
        const { state, nonce } = await own.begin();
        return { own, state, token: await issuer.sign(issuer.claims(nonce, { sub })) };
      }),
    );
    const tokens = new Map(accounts.map(({ state, token }) => [`code-${state}`, token]));
    issuer.state.tokenFor = (code) => tokens.get(code);
    const results = await Promise.all(
      accounts.map(({ own, state }) =>
        own.callback({ code: `code-${state}`, state, iss: issuer.url }),
      ),
    );
    issuer.state.tokenFor = undefined;
    expect(results.map(({ problem }) => problem).toSorted()).toEqual([null, "other_identity"]);
  });
});

describe("Basic 2.1.5.2 (Core 3.1.2.6): errors of the provider", () => {
  it.each([
    ["access_denied", "denied"],
    ["login_required", "denied"],
    ["server_error", "provider_unavailable"],
    ["temporarily_unavailable", "provider_unavailable"],
  ])("explains %s as %s", async (error, problem) => {
    const { state } = await browser.begin();
    const description = "<script>alert(1)</script>";
    const result = await browser.callback({
      ...{ error, state, iss: issuer.url },
      error_description: description,
    });
    expect(result.problem).toBe(problem);
    expect(result.page.href).not.toContain("script");
    expect(signIn.lines.join("")).not.toContain(description);
  });
});
