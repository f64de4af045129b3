import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import { operatorToken } from "../management-fixture.ts";
import { type Claims, clientId, givenIssuer, newKeys } from "./given-issuer.ts";
import { type Browser, openSignIn, seedOrganization } from "./sign-in-fixture.ts";

/**
 * Tests the end of sessions by the provider, by section of OpenID Connect Back-Channel Logout 1.0.
 *
 * These sections do not apply: 2.1 and 2.3 (metadata and behavior of providers), 2.2 (dynamic registration: operators
 * register the address, by `docs/people.md`), refresh tokens in 2.7 (they are never requested), 3 (advice for providers).
 */
const issuer = await givenIssuer();
const signIn = await openSignIn(issuer.url);
const { organizationId, userIds } = await seedOrganization(signIn, "ada@example.com");
afterAll(async () => {
  await signIn.close();
  await issuer.close();
});

let browser: Browser;
beforeEach(async () => {
  browser = await signedIn("session-1");
});

/** Returns a browser that has signed in under a session of the provider. */
async function signedIn(sid: string): Promise<Browser> {
  const own = signIn.browser();
  const { state, nonce } = await own.begin();
  issuer.state.idToken = await issuer.sign(issuer.claims(nonce, { sid }));
  expect(await own.callback({ code: "a", state, iss: issuer.url })).toMatchObject({
    problem: null,
  });
  return own;
}

const isSignedIn = async (own: Browser) => (await signIn.sessionOf(own)) !== undefined;

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";
let tokenCount = 0;

/** Returns the claims of a valid logout token, with changes. */
function logoutClaims(changes: Claims = {}): Claims {
  const now = Math.floor(Date.now() / 1_000);
  return {
    ...{ iss: issuer.url, aud: clientId, iat: now, exp: now + 120, jti: `token-${++tokenCount}` },
    ...{ sid: "session-1", sub: "ada-subject", events: { [logoutEvent]: {} } },
    ...changes,
  };
}

const typed = (claims: Claims) => issuer.sign(claims, { typ: "logout+jwt" });

/** Sends a request as the provider does. Each test has its own address, because invalid tokens are limited. */
const send = (body: string | URLSearchParams, from = signIn.browser()) =>
  from.request("/auth/oidc/backchannel-logout", { method: "POST", body });

async function sendToken(token: string, from?: Browser): Promise<number> {
  const { status } = await send(new URLSearchParams({ logout_token: token }), from);
  return status;
}

const seconds = (ahead: number) => Math.floor(Date.now() / 1_000) + ahead;

describe("2.5: logout requests", () => {
  it("accepts a token in a form, and forbids the storage of the response", async () => {
    const response = await send(new URLSearchParams({ logout_token: await typed(logoutClaims()) }));
    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(await isSignedIn(browser)).toBe(false);
  });

  it("accepts further parameters", async () => {
    const token = await typed(logoutClaims());
    const response = await send(new URLSearchParams({ logout_token: token, more: "a" }));
    expect(response.status).toBe(200);
  });

  it.each([
    ["no token", async () => new URLSearchParams({ token: "a" })],
    [
      "two tokens",
      async () => {
        const token = await typed(logoutClaims());
        return new URLSearchParams(`logout_token=${token}&logout_token=${token}`);
      },
    ],
    ["JSON", async () => JSON.stringify({ logout_token: await typed(logoutClaims()) })],
  ])("rejects a body with %s", async (_, body) => {
    expect((await send(await body())).status).toBeGreaterThanOrEqual(400);
    expect(await isSignedIn(browser)).toBe(true);
  });

  it("rejects a body that is too large", async () => {
    expect((await send(new URLSearchParams({ logout_token: "a".repeat(70_000) }))).status).toBe(
      413,
    );
  });
});

describe("2.4 and 2.6: logout tokens", () => {
  it.each([["logout+jwt"], ["application/logout+jwt"], ["JWT"], [undefined]])(
    "accepts the type %s",
    async (typ) => {
      const token = await issuer.sign(logoutClaims(), typ === undefined ? {} : { typ });
      expect(await sendToken(token)).toBe(200);
    },
  );

  it.each([["at+jwt"], ["secevent+jwt"]])("rejects the type %s", async (typ) => {
    expect(await sendToken(await issuer.sign(logoutClaims(), { typ }))).toBe(400);
    expect(await isSignedIn(browser)).toBe(true);
  });

  it.each([
    ["another issuer", { iss: "https://evil.example" }],
    ["another audience", { aud: "another" }],
    ["no issue", { iat: undefined }],
    ["an issue in the future", { iat: seconds(120) }],
    ["an issue long ago", { iat: seconds(-700) }],
    ["no end", { exp: undefined }],
    ["an end in the past", { exp: seconds(-60) }],
    ["no id", { jti: undefined }],
    ["an id that is no text", { jti: 1 }],
    ["no events", { events: undefined }],
    ["another event", { events: { "https://example.com/event": {} } }],
    ["an event that is no object", { events: { [logoutEvent]: true } }],
    ["events that are no object", { events: [logoutEvent] }],
    ["neither session nor subject", { sid: undefined, sub: undefined }],
    ["a session that is no text", { sid: 1 }],
    ["a nonce, as an id token has", { nonce: "a" }],
    ["a nonce that is null", { nonce: null }],
  ] satisfies [string, Claims][])("rejects one with %s", async (_, changes) => {
    expect(await sendToken(await typed(logoutClaims(changes)))).toBe(400);
    expect(await isSignedIn(browser)).toBe(true);
  });

  it("rejects one without a signature, and one of an unknown key", async () => {
    const parts = [{ alg: "none", typ: "logout+jwt" }, logoutClaims()].map((part) =>
      Buffer.from(JSON.stringify(part)).toString("base64url"),
    );
    expect(await sendToken(`${parts.join(".")}.`)).toBe(400);
    const keys = await newKeys("first");
    expect(await sendToken(await issuer.sign(logoutClaims(), { keys }))).toBe(400);
    expect(await isSignedIn(browser)).toBe(true);
  });

  it("accepts each token once, also of simultaneous requests", async () => {
    const token = await typed(logoutClaims());
    const statuses = await Promise.all(Array.from({ length: 5 }, () => sendToken(token)));
    expect(statuses.toSorted()).toEqual([200, 400, 400, 400, 400]);
  });
});

describe("2.7: which sessions end", () => {
  it("ends only the session of the provider's session", async () => {
    const other = await signedIn("session-2");
    await sendToken(await typed(logoutClaims()));
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([false, true]);
  });

  it("ends all sessions of the person without a session of the provider", async () => {
    const other = await signedIn("session-2");
    await sendToken(await typed(logoutClaims({ sid: undefined })));
    expect([await isSignedIn(browser), await isSignedIn(other)]).toEqual([false, false]);
  });

  it("succeeds for a session and a subject that are unknown", async () => {
    expect(await sendToken(await typed(logoutClaims({ sid: "unknown" })))).toBe(200);
    const changes = { sid: undefined, sub: "unknown" };
    expect(await sendToken(await typed(logoutClaims(changes)))).toBe(200);
    expect(await isSignedIn(browser)).toBe(true);
  });
});

describe("the audit log", () => {
  /** Returns the entries of ended sessions, the newest first. */
  async function endings() {
    const path = `/api/v1/organizations/${organizationId}/changes?action=sessions_ended`;
    return (await signIn.call(path, { key: operatorToken })).body.changes;
  }

  it("contains the sessions that a token has ended", async () => {
    const before = await endings();
    await sendToken(await typed(logoutClaims()));
    const [newest, ...earlier] = await endings();
    expect(newest).toMatchObject({
      ...{ user_id: userIds[0], actor: { id: userIds[0], via: "oidc" } },
      after: { ended_by: "provider" },
    });
    expect(earlier).toEqual(before);
  });

  it("contains nothing about a token that has ended no session", async () => {
    const before = await endings();
    await sendToken(await typed(logoutClaims({ sid: "unknown" })));
    await sendToken("invalid");
    expect(await endings()).toEqual(before);
  });
});

describe("2.8: responses", () => {
  it("responds 200 without a body, or 400 with the error, and forbids the storage of both", async () => {
    const [done, rejected] = await Promise.all(
      [await typed(logoutClaims()), "invalid"].map((token) =>
        send(new URLSearchParams({ logout_token: token })),
      ),
    );
    expect([done?.status, await done?.text()]).toEqual([200, ""]);
    expect([rejected?.status, await rejected?.json()]).toMatchObject([
      400,
      { error: { code: "VALIDATION_001" } },
    ]);
    for (const response of [done, rejected])
      expect(response?.headers.get("cache-control")).toBe("no-store");
  });
});

describe("4.1: confusion of tokens", () => {
  it("accepts no id token as a logout token", async () => {
    expect(await sendToken(issuer.state.idToken)).toBe(400);
    expect(await isSignedIn(browser)).toBe(true);
  });

  it("accepts no logout token as an id token", async () => {
    const own = signIn.browser();
    const { state } = await own.begin();
    issuer.state.idToken = await typed(logoutClaims());
    expect(await own.callback({ code: "a", state, iss: issuer.url })).toMatchObject({
      problem: "invalid_response",
    });
    expect(own.hasSession()).toBe(false);
  });
});

describe("limits", () => {
  it("limits invalid tokens by address, but never valid ones", async () => {
    const provider = signIn.browser();
    for (let n = 0; n < 12; n++)
      expect(await sendToken(await typed(logoutClaims({ sid: "unknown" })), provider)).toBe(200);
    for (let n = 0; n < 10; n++) expect(await sendToken("invalid", provider)).toBe(400);
    expect(await sendToken("invalid", provider)).toBe(429);
  });

  it("limits the start and the callback to ten requests a minute and address", async () => {
    for (const path of ["/auth/oidc/start", "/auth/oidc/callback"]) {
      const own = signIn.browser();
      for (let n = 0; n < 10; n++) expect((await own.request(path)).status).toBe(303);
      const response = await own.request(path);
      expect(response.status).toBe(429);
      expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
    }
  });
});
