import { randomBytes } from "node:crypto";
import { createKeyDirectory, createKeyLimits, createLastUsed, makeApiKey } from "@halyard/api-keys";
import { listPlans } from "@halyard/contracts";
import { createCallers, createPeopleDirectory, createPlaces } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import { call, testSignatures } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { createAuthentication } from "../../src/access/principal.ts";
import { createKeyLookup } from "../../src/keys/key-lookup.ts";
import { audiencesOf } from "../audiences/audience-fixture.ts";
import {
  type Management,
  openManagement,
  operatorToken,
  seedProject,
} from "../management-fixture.ts";

/** So slow that no request is granted again while the tests run. */
const keyRate = { requestsPerSecond: 0.001, burst: 3 };

const management = await openManagement({ keyRate });
afterAll(() => management.close());

const ask = (key: string, path = "/api/v1/flags") => management.call(path, { key });

const statuses = async (times: number, key: string, path?: string) => {
  const seen: number[] = [];
  for (let index = 0; index < times; index += 1) seen.push((await ask(key, path)).status);
  return seen;
};

describe("given a key that exceeds its rate limit", () => {
  it("returns 429 with the common error shape and the rate limit headers", async () => {
    const { serverKey } = await seedProject(management);
    expect(await statuses(3, serverKey)).toEqual([200, 200, 200]);
    const rejected = await ask(serverKey);
    expect(rejected.status).toBe(429);
    expect(rejected.body).toEqual({
      error: {
        code: "RATE_001",
        category: "RATE",
        message: expect.stringMatching(
          /^Too many requests with this key. The limit of a key is .* The operator raises it with KEY_REQUESTS_PER_SECOND and KEY_REQUESTS_BURST.$/,
        ),
        status: 429,
      },
    });
    expect(Number(rejected.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(rejected.headers.get("ratelimit-policy")).toBe('"requests";q=3;w=3000');
    expect(rejected.headers.get("ratelimit")).toMatch(/^"requests";r=0;t=\d+$/);
  });

  it("rejects the key on every route, but neither other keys nor the operator", async () => {
    const { serverKey, environmentOnlyKey } = await seedProject(management);
    await statuses(3, serverKey);
    expect(await statuses(1, serverKey, "/api/v1/operators")).toEqual([429]);
    expect(await statuses(1, environmentOnlyKey)).toEqual([200]);
    const asOperator = await statuses(5, operatorToken, "/api/v1/organizations");
    expect(asOperator).toEqual([200, 200, 200, 200, 200]);
  });
});

describe("given an organization that sends large requests", () => {
  /** The cost of an organization's whole burst, 15 small requests, in bytes. */
  const burstBytes = 15 * 16 * 1024;
  const createLarge = (key: string, bytes: number) =>
    management.call("/api/v1/flags", {
      method: "POST",
      key,
      body: { key: "large", name: "A flag", targeting_rules: rulesOf(bytes) },
    });
  const rulesOf = (bytes: number) => [
    {
      conditions: [
        {
          attribute: "id",
          operator: "in",
          value: Array.from({ length: bytes / 256 }, (_, index) => `${index}`.padStart(253, "u")),
        },
      ],
    },
  ];

  it("counts the bytes of bodies and of what they change, for all keys of the organization", async () => {
    const { serverKey, environmentOnlyKey } = await seedProject(management);
    const stranger = await seedProject(management);
    // The published event and entry cost more than is left of the burst.
    expect((await createLarge(serverKey, burstBytes / 2)).status).toBe(201);
    const rejected = await ask(environmentOnlyKey);
    expect(rejected.status).toBe(429);
    expect(rejected.body.error.message).toMatch(
      /^Too many requests with the keys of this organization\. .* Large requests count several times\. /,
    );
    expect(rejected.headers.get("ratelimit-policy")).toBe('"requests";q=15;w=3000');
    expect((await ask(stranger.serverKey)).status).toBe(200);
  });

  it("counts the entries of uploaded lists in addition to the body", async () => {
    const project = await seedProject(management);
    const given = audiencesOf(management, project);
    await given.create({ key: "beta" });
    // The body takes half of the burst, and its entries the rest.
    const entries = Array.from({ length: burstBytes / 2 / 512 }, (_, index) =>
      `${index}\n`.padStart(512, "u"),
    );
    expect((await given.upload("beta", entries.join(""))).status).toBe(200);
    expect((await ask(project.environmentOnlyKey)).status).toBe(429);
  });

  it("rejects a body that costs more than is left before it is read", async () => {
    const { serverKey, environmentOnlyKey } = await seedProject(management);
    expect((await ask(environmentOnlyKey)).status).toBe(200);
    const rejected = await management.call("/api/v1/flags", {
      method: "POST",
      key: serverKey,
      body: `"${"x".repeat(burstBytes)}"`,
    });
    expect(rejected.status).toBe(429);
  });
});

describe("given a client key, which everybody can read in a page", () => {
  it("does not use up the limit of the organization's server keys", async () => {
    const { clientKey, serverKey } = await seedProject(management);
    const large = { method: "POST", key: clientKey, body: `"${"x".repeat(100 * 1024)}"` };
    for (const status of [403, 403, 403, 429])
      expect((await management.call("/api/v1/flags", large)).status).toBe(status);
    expect((await ask(serverKey)).status).toBe(200);
  });
});

describe("given an address that sends invalid tokens", () => {
  it("returns 429 even with forged forwarding headers, but accepts valid keys", async () => {
    const { serverKey } = await seedProject(management);
    const wrong = (index: number) =>
      call(`${management.url}/api/v1/organizations`, {
        key: `not the operator's token ${index}`,
        headers: { "x-forwarded-for": `192.0.2.${index}` },
      });
    const seen: number[] = [];
    for (let index = 0; index < 5; index += 1) seen.push((await wrong(index)).status);
    expect(seen).toEqual([401, 401, 401, 429, 429]);
    expect((await wrong(6)).body.error.message).toMatch(
      /^Too many invalid keys or sessions from this address. The limit of an address is .* KEY_REQUESTS_BURST.$/,
    );
    expect(await statuses(1, serverKey)).toEqual([200]);
  });
});

describe("given an outdated key directory, so that keys are read from the table", () => {
  /** Creates an authentication that uses the real table and counts its queries. */
  function givenOldDirectory() {
    let queries = 0;
    const sql = new Proxy(management.sql, {
      apply(target, self, given) {
        queries += 1;
        return Reflect.apply(target as unknown as () => unknown, self, given);
      },
    }) as Sql;
    const findKey = (directory = createKeyDirectory(testSignatures())) =>
      createKeyLookup({ sql, directory, directoryIsCurrent: () => false });
    const limits = createKeyLimits(keyRate);
    const ask = (token: string, directory?: Management["directory"]) =>
      createAuthentication({
        operatorToken,
        findKey: findKey(directory),
        callers: createCallers({
          people: { ...createPeopleDirectory(), places: createPlaces() },
          publicUrl: undefined,
          nowMs: Date.now,
        }),
        limits,
        lastUsed: createLastUsed(),
        nowMs: () => Date.now(),
      })({ ...listPlans, access: "any_key" })({
        id: "request",
        ip: "192.0.2.1",
        headers: { authorization: `Bearer ${token}` },
      });
    return { ask, queries: () => queries };
  }
  const unknownKey = () => makeApiKey("server", randomBytes).key;

  it("rejects a flood of unknown keys without queries", async () => {
    const { ask, queries } = givenOldDirectory();
    for (let index = 0; index < 3; index += 1)
      expect(await ask(unknownKey())).toMatchObject({ rejected: "AUTH_001" });
    const before = queries();
    expect(before).toBeGreaterThan(0);
    for (let index = 0; index < 5; index += 1)
      expect(await ask(unknownKey())).toMatchObject({ rejected: "RATE_001" });
    expect(queries()).toBe(before);
  });

  it("accepts a known key at the flooded address, and a new key at another address", async () => {
    const { serverKey } = await seedProject(management);
    const flooded = givenOldDirectory();
    for (let index = 0; index < 4; index += 1) await flooded.ask(unknownKey());
    expect(await flooded.ask(serverKey, management.directory)).toMatchObject({ kind: "key" });
    expect(await givenOldDirectory().ask(serverKey)).toMatchObject({ kind: "key" });
  });
});
