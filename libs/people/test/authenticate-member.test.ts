import {
  createKeyLimits,
  createLastUsed,
  type DirectoryKey,
  digestOfToken,
} from "@halyard/api-keys";
import { environmentHeader, getUsage } from "@halyard/contracts";
import {
  createCallers,
  createMemberAuthentication,
  createPeopleDirectory,
  createPlaces,
  digestOfSecret,
} from "@halyard/people";
import { describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";

const rate = { requestsPerSecond: 1, burst: 2 };
const tooMany = (seconds: number) =>
  expect.objectContaining({
    rejected: "RATE_001",
    headers: {
      "retry-after": String(seconds),
      "ratelimit-policy": '"requests";q=2;w=2',
      ratelimit: `"requests";r=0;t=${seconds}`,
    },
  });

/** The authentication with valid keys of two organizations, and a clock that the test sets. */
function givenAuthentication() {
  const organizationId = "organization";
  const keys: Record<string, Pick<DirectoryKey, "id" | "kind" | "organizationId">> = {
    "server-a": { id: "a", kind: "server", organizationId },
    "server-b": { id: "b", kind: "server", organizationId },
    "a-client": { id: "c", kind: "client", organizationId },
    "server-of-others": { id: "others", kind: "server", organizationId: "other organization" },
    ...Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [
        `issued-${index}`,
        { id: `issued-${index}`, kind: "server" as const, organizationId },
      ]),
    ),
  };
  const clock = { nowMs: 0 };
  const people = createPeopleDirectory();
  const sessionId = uuidv7();
  const secret = "s".repeat(43);
  const at = new Date(0).toISOString();
  people.apply({
    address: { kind: "session", sessionId },
    value: {
      ...{ kind: "session", session_id: sessionId, secret_sha256: digestOfSecret(secret) },
      ...{ person_id: uuidv7(), via: "passkey", groups: [], signed_in_at: at, confirmed_at: at },
      ...{ expires_at: "2099-01-01T00:00:00.000Z", idle_until: "2099-01-01T00:00:00.000Z" },
      ...{ version: 1, committed_at: at },
    },
  });
  const lastUsed = createLastUsed();
  const authenticate = createMemberAuthentication({
    verify: (text) => {
      const key = keys[text];
      return key && ({ scope: "write", ...key } as DirectoryKey);
    },
    callers: createCallers({
      people: { ...people, places: createPlaces() },
      publicUrl: new URL("https://flags.example.com"),
      nowMs: () => clock.nowMs,
    }),
    limits: createKeyLimits(rate),
    lastUsed,
    operatorTokenDigest: digestOfToken("the operator"),
    nowMs: () => clock.nowMs,
  });
  const request = (token: string | undefined, ip = "192.0.2.1") =>
    authenticate(getUsage)({
      id: "request",
      ip,
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    });
  const requestBySession = (id = sessionId) =>
    authenticate(getUsage)({
      ...{ id: "request", ip: "192.0.2.1" },
      headers: {
        cookie: `__Host-halyard-session=${id}.${secret}`,
        [environmentHeader.toLowerCase()]: uuidv7(),
      },
    });
  let reads = 0;
  /** Each read is long after the previous one. */
  const used = () => lastUsed.take(60_000 * ++reads, 100).map(({ keyId }) => keyId);
  return { request, requestBySession, clock, used };
}

describe("given a key beyond its rate limit", () => {
  it("is rejected until time has passed, from any address", async () => {
    const { request, clock } = givenAuthentication();
    expect(await request("server-a")).toMatchObject({ id: "a" });
    expect(await request("server-a")).toMatchObject({ id: "a" });
    expect(await request("server-a", "192.0.2.2")).toEqual(tooMany(1));
    clock.nowMs = 1_000;
    expect(await request("server-a")).toMatchObject({ id: "a" });
  });

  it("does not affect other keys", async () => {
    const { request } = givenAuthentication();
    for (let index = 0; index < 3; index += 1) await request("server-a");
    expect(await request("server-b")).toMatchObject({ id: "b" });
  });

  it("gets 429 instead of 403", async () => {
    const { request } = givenAuthentication();
    expect(await request("a-client")).toMatchObject({ rejected: "AUTH_002" });
    expect(await request("a-client")).toMatchObject({ rejected: "AUTH_002" });
    expect(await request("a-client")).toEqual(tooMany(1));
  });
});

describe("given a session beyond its rate limit", () => {
  it("gets 429 instead of 404, until time has passed", async () => {
    const { requestBySession, clock } = givenAuthentication();
    for (let index = 0; index < 2; index += 1)
      expect(await requestBySession()).toMatchObject({ rejected: "NOT_FOUND_001" });
    expect(await requestBySession()).toEqual(tooMany(1));
    clock.nowMs = 1_000;
    expect(await requestBySession()).toMatchObject({ rejected: "NOT_FOUND_001" });
  });
});

describe("given an organization with many keys", () => {
  it("has five times the rate of a key, which does not affect other organizations", async () => {
    const { request, clock } = givenAuthentication();
    const seen = await Promise.all(
      Array.from({ length: 12 }, (_, index) => request(`issued-${index}`)),
    );
    expect(seen.filter((one) => "id" in one)).toHaveLength(10);
    expect(seen.at(-1)).toMatchObject({
      rejected: "RATE_001",
      message: expect.stringMatching(/^Too many requests with the keys of this organization\. /),
      headers: { "ratelimit-policy": '"requests";q=10;w=2', ratelimit: '"requests";r=0;t=1' },
    });
    expect(await request("server-of-others")).toMatchObject({ id: "others" });
    clock.nowMs = 200;
    expect(await request("issued-11")).toMatchObject({ id: "issued-11" });
  });
});

describe("given an address that sends invalid keys", () => {
  it("gets 401, and 429 after too many of them", async () => {
    const { request, clock } = givenAuthentication();
    expect(await request("wrong")).toMatchObject({ rejected: "AUTH_001" });
    expect(await request("also wrong")).toMatchObject({ rejected: "AUTH_001" });
    expect(await request("wrong again")).toEqual(tooMany(1));
    clock.nowMs = 1_000;
    expect(await request("wrong")).toMatchObject({ rejected: "AUTH_001" });
  });

  it("affects neither other addresses nor valid keys", async () => {
    const { request } = givenAuthentication();
    for (let index = 0; index < 3; index += 1) await request("wrong");
    expect(await request("wrong", "192.0.2.2")).toMatchObject({ rejected: "AUTH_001" });
    expect(await request("server-a")).toMatchObject({ id: "a" });
  });

  it("shares its limit with all addresses of its IPv6 network, but not with other networks", async () => {
    const { request } = givenAuthentication();
    for (const host of ["1", "2"])
      expect(await request("wrong", `2001:db8::${host}`)).toMatchObject({ rejected: "AUTH_001" });
    expect(await request("wrong", "2001:db8::3:4:5:6")).toEqual(tooMany(1));
    expect(await request("wrong", "2001:db8:0:1::1")).toMatchObject({ rejected: "AUTH_001" });
  });

  it("shares its limit with made-up sessions, which affect no valid session", async () => {
    const { request, requestBySession } = givenAuthentication();
    expect(await requestBySession(uuidv7())).toMatchObject({ rejected: "AUTH_001" });
    expect(await request("wrong")).toMatchObject({ rejected: "AUTH_001" });
    expect(await requestBySession(uuidv7())).toEqual(tooMany(1));
    expect(await requestBySession()).toMatchObject({ rejected: "NOT_FOUND_001" });
  });

  it("is not limited for requests without a key", async () => {
    const { request } = givenAuthentication();
    for (let index = 0; index < 5; index += 1)
      expect(await request(undefined)).toMatchObject({ rejected: "AUTH_001" });
    expect(await request("wrong")).toMatchObject({ rejected: "AUTH_001" });
  });
});

describe("given the operator's token", () => {
  it("gets 403 without a limit", async () => {
    const { request } = givenAuthentication();
    for (let index = 0; index < 5; index += 1)
      expect(await request("the operator")).toMatchObject({ rejected: "AUTH_002" });
    expect(await request("the operator's")).toMatchObject({ rejected: "AUTH_001" });
  });
});

describe("given used keys", () => {
  it("notes all valid keys, even those without the right or beyond their limit", async () => {
    const { request, used } = givenAuthentication();
    for (const token of ["server-a", "a-client", "wrong", undefined]) await request(token);
    expect(used()).toEqual(["a", "c"]);
    for (let index = 0; index < 2; index += 1) await request("server-b");
    expect(used()).toEqual(["b"]);
    expect(await request("server-b")).toEqual(tooMany(1));
    expect(used()).toEqual(["b"]);
  });
});
