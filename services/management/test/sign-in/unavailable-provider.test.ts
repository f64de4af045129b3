import { call } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { operatorToken } from "../management-fixture.ts";
import { givenIssuer } from "./given-issuer.ts";
import { openSignIn, type SignIn, seedOrganization } from "./sign-in-fixture.ts";

/** Tests that a slow or unavailable provider delays no other request, and that its problem reaches the browser. */
const issuer = await givenIssuer();
const signIn = await openSignIn(issuer.url);
await seedOrganization(signIn, "ada@example.com");
afterEach(() => {
  issuer.state.override = undefined;
  issuer.state.delayMs = 0;
});
afterAll(async () => {
  await signIn.close();
  await issuer.close();
});

const silent = () => true;
const unavailable = { problem: "provider_unavailable" };

/** Runs requests to a management process that has never reached the provider. */
async function withFreshProcess(work: (fresh: SignIn) => Promise<void>): Promise<void> {
  const fresh = await openSignIn(issuer.url);
  try {
    await work(fresh);
  } finally {
    await fresh.close();
  }
}

async function problemOfStart(fresh: SignIn): Promise<string | null> {
  const { location } = await fresh.browser().begin();
  return location.searchParams.get("problem");
}

/** Returns from the provider with a valid id token, which lacks the address. */
async function callback() {
  const browser = signIn.browser();
  const { state, nonce } = await browser.begin();
  issuer.state.idToken = await issuer.sign(issuer.claims(nonce, { email: undefined }));
  return { browser, finish: () => browser.callback({ code: "a", state, iss: issuer.url }) };
}

async function durationOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

describe("given a provider that does not respond", () => {
  it("is reported within five seconds, and other requests do not wait", () =>
    withFreshProcess(async (fresh) => {
      issuer.state.override = silent;
      const beginning = durationOf(async () => {
        const { location } = await fresh.browser().begin("?return_to=/flags");
        expect(location.href).toBe(
          `${fresh.url}/sign-in?problem=provider_unavailable&return_to=%2Fflags`,
        );
      });
      const headers = { authorization: `Bearer ${operatorToken}` };
      const listing = durationOf(async () => {
        expect((await call(`${fresh.url}/api/v1/organizations`, { headers })).status).toBe(200);
      });
      expect(await listing).toBeLessThan(1_000);
      expect(await beginning).toBeLessThan(5_000);
    }));

  it("is reported within five seconds to a browser that signs in or out, although it responded before", () =>
    withFreshProcess(async (fresh) => {
      expect(await problemOfStart(fresh)).toBeNull();
      fresh.clock.now = () => new Date(Date.now() + 11_000);
      issuer.state.override = silent;
      const ms = await durationOf(async () =>
        expect(await problemOfStart(fresh)).toBe("provider_unavailable"),
      );
      expect(ms).toBeLessThan(5_000);
    }));

  it("is reported within five seconds if it stops between the start and the callback", async () => {
    const { browser, finish } = await callback();
    issuer.state.override = silent;
    const ms = await durationOf(async () => expect(await finish()).toMatchObject(unavailable));
    expect(ms).toBeLessThan(5_000);
    expect(browser.hasSession()).toBe(false);
  });

  it("is reported within five seconds if each of its responses is slow", async () => {
    const { finish } = await callback();
    issuer.state.delayMs = 2_000;
    const ms = await durationOf(async () => expect(await finish()).toMatchObject(unavailable));
    expect(ms).toBeLessThan(5_000);
  });
});

describe("given a provider that is unavailable", () => {
  it("is reported immediately, and signs in after its return", () =>
    withFreshProcess(async (fresh) => {
      issuer.state.override = (_, response) => {
        response.writeHead(502).end("bad gateway");
        return true;
      };
      expect(await problemOfStart(fresh)).toBe("provider_unavailable");
      issuer.state.override = undefined;
      expect(await problemOfStart(fresh)).toBeNull();
    }));

  it("is reported if nothing listens", async () => {
    const closed = await givenIssuer();
    await closed.close();
    const fresh = await openSignIn(closed.url);
    expect(await problemOfStart(fresh)).toBe("provider_unavailable");
    await fresh.close();
  });

  it.each([
    ["/token", 503],
    ["/keys", 500],
    ["/userinfo", 503],
  ])("is reported if %s responds with %d", async (path, status) => {
    const { finish } = await callback();
    issuer.state.override = (request, response) => {
      if (request.url !== path) return false;
      response.writeHead(status).end();
      return true;
    };
    expect(await finish()).toMatchObject(unavailable);
  });

  it.each([["invalid_grant"], ["invalid_client"]])(
    "rejects a sign-in with the error %s, and logs the code but not the description",
    async (error) => {
      const { finish } = await callback();
      issuer.state.override = (request, response) => {
        if (request.url !== "/token") return false;
        response.writeHead(400, { "content-type": "application/json" });
        response.end(JSON.stringify({ error, error_description: "a secret" }));
        return true;
      };
      expect(await finish()).toMatchObject({ problem: "invalid_response" });
      expect(signIn.lines.join("")).toContain(error);
      expect(signIn.lines.join("")).not.toContain("a secret");
    },
  );
});
