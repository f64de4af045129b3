import { type Called, call } from "@halyard/testing";
import { afterEach, describe, expect, it } from "@jest/globals";
import { type StreamSlots, streamLimitReached } from "../../src/admission/stream-slots.ts";
import type { EnvironmentHour } from "../../src/usage/counting.ts";
import {
  apiKey,
  flagEntry,
  id,
  organizationWith,
  plansEntry,
  revokedKey,
  typedFlag,
} from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";
import { streamAddress, tokenSecret } from "../http/ofrep/asking.ts";

/** Tests which limits responses report, and which requests count. */
const client = apiKey();
const flags = [
  flagEntry({ flag_id: id("flag", 1), key: "alpha", enabled: true }),
  flagEntry({ flag_id: id("flag", 2), key: "beta" }),
];

/** Start time of each test, far from the end of an hour or month. */
const month = "2027-01";
const beganMs = Date.parse(`${month}-15T09:30:00.000Z`);

let edge: EdgeServer;
afterEach(() => edge.stop());

async function start(
  requests_per_month: number | null,
  settings: Parameters<typeof startEdgeServer>[1] = {},
): Promise<void> {
  const entries = [...organizationWith({ requests_per_month }), client.entry, ...flags];
  edge = await startEdgeServer(entries, { ...settings, countsUsage: true });
  edge.passTime(beganMs - Date.now());
}

const ask = (path: string, options: Parameters<typeof call>[1] = {}) =>
  call(edge.url + path, { key: client.text, ...options });
const poll = (headers: Record<string, string> = {}) => ask("/api/v1/sdk/flags", { headers });
const post = (path: string, body: unknown) => ask(path, { method: "POST", body });
const ofrepAll = () => post("/ofrep/v1/evaluate/flags", {});

const kinds: { kind: string; status: number; send: () => Promise<Called> }[] = [
  { kind: "all flags", status: 200, send: () => poll() },
  {
    kind: "all flags that have not changed",
    status: 304,
    send: () => poll({ "if-none-match": "*" }),
  },
  {
    kind: "the headers of all flags",
    status: 200,
    send: () => ask("/api/v1/sdk/flags", { method: "HEAD" }),
  },
  {
    kind: "an invalid context",
    status: 400,
    send: () => poll({ "x-user-context": "{" }),
  },
  { kind: "all values", status: 200, send: () => ask("/api/v1/sdk/values") },
  { kind: "one flag", status: 200, send: () => ask("/api/v1/sdk/evaluate?key=alpha") },
  { kind: "a missing flag", status: 404, send: () => ask("/api/v1/sdk/evaluate?key=no") },
  {
    kind: "a body that is too large",
    status: 413,
    send: () => post("/api/v1/sdk/flags", { padding: "x".repeat(64 * 1024) }),
  },
  { kind: "all flags by OFREP", status: 200, send: ofrepAll },
  {
    kind: "all flags by OFREP that have not changed",
    status: 304,
    send: () =>
      ask("/ofrep/v1/evaluate/flags", {
        method: "POST",
        body: {},
        headers: { "if-none-match": "*" },
      }),
  },
  {
    kind: "one flag by OFREP",
    status: 200,
    send: () => post("/ofrep/v1/evaluate/flags/alpha", {}),
  },
  {
    kind: "a missing flag by OFREP",
    status: 404,
    send: () => post("/ofrep/v1/evaluate/flags/no", {}),
  },
  {
    kind: "an invalid context by OFREP",
    status: 400,
    send: () => post("/ofrep/v1/evaluate/flags", { context: 7 }),
  },
];

describe("given an organization with a limit", () => {
  it.each(kinds)("answers and counts $kind ($status) with the remaining requests", async (one) => {
    await start(1_000);
    const { status, headers } = await one.send();
    expect(status).toBe(one.status);
    expect(headers.get("ratelimit-policy")).toMatch(/^"monthly";q=1000;w=2678400$/);
    expect(headers.get("ratelimit")).toMatch(/^"monthly";r=999;t=\d+$/);
    expect(headers.get("access-control-expose-headers")).toContain("RateLimit, RateLimit-Policy");
    expect(requests()).toBe(1);
  });

  it("counts no requests with unknown keys, no unknown routes and no preflights", async () => {
    await start(1_000);
    const url = `${edge.url}/api/v1/sdk/flags`;
    const rejected = await call(url, { key: apiKey().text });
    expect(rejected.status).toBe(401);
    expect(rejected.headers.has("ratelimit")).toBe(false);
    expect((await ask("/api/v1/sdk/nothing")).status).toBe(404);
    const asked = { origin: "https://shop.example", "access-control-request-method": "GET" };
    expect((await fetch(url, { method: "OPTIONS", headers: asked })).status).toBe(204);
    expect(requests()).toBe(0);
  });

  it("counts requests by endpoint, bulk responses and evaluations", async () => {
    await start(1_000);
    for (const { send } of kinds) await send();
    const [counted, ...others] = take();
    expect(others).toEqual([]);
    expect(counted?.requests).toEqual({
      flags: 5,
      values: 1,
      evaluate: 2,
      stream: 0,
      ruleset: 0,
      ruleset_stream: 0,
      ofrep_flags: 3,
      ofrep_flag: 2,
      ofrep_stream: 0,
    });
    expect(counted?.bulkAnswers).toBe(6);
    const evaluations = [...(counted?.flags ?? [])].map(([flagId, one]) => [
      flagId,
      one.evaluations,
    ]);
    expect(evaluations).toEqual([[id("flag", 1), 2]]);
  });
});

describe("given a typed flag", () => {
  const fields = { flag_id: id("flag", 3), key: "color", off_variation: null };
  const forPro = {
    conditions: [{ attribute: "plan", operator: "equals" as const, value: "pro" }],
  };
  const color = typedFlag("string", { blue: '"blue"' }, { ...fields, targeting_rules: [forPro] });
  const evaluate = "/api/v1/sdk/evaluate?key=color";
  const ofrep = "/ofrep/v1/evaluate/flags/color";
  const pro = { plan: "pro" };
  const large = { ...pro, padding: "x".repeat(2_000) };
  const counted = () => take().map((each) => each.flags?.get(id("flag", 3)));

  it.each([
    ["a request for it", () => post(evaluate, pro)],
    ["a request for it by OFREP", () => post(ofrep, { context: pro })],
    ["a request that evaluates it in steps", () => post(evaluate, large)],
  ])("counts %s by variation", async (_, send) => {
    await start(1_000);
    await edge.feed(color);
    expect((await send()).status).toBe(200);
    expect(counted()).toMatchObject([{ evaluations: 1, variations: new Map([["blue", 1]]) }]);
  });

  it("counts a request that gets the caller's default for the flag only", async () => {
    await start(1_000);
    await edge.feed(color);
    await post(evaluate, {});
    expect(counted()).toMatchObject([{ evaluations: 1, variations: undefined }]);
  });

  it("counts a request that explains its value by variation", async () => {
    const server = apiKey({ key_kind: "server" });
    await start(1_000);
    await edge.feed(server.entry);
    await edge.feed(color);
    const body = pro;
    await ask(`${evaluate}&explain=true`, { key: server.text, method: "POST", body });
    expect(counted()).toMatchObject([{ variations: new Map([["blue", 1]]) }]);
  });

  it("does not count responses with all flags by variation", async () => {
    await start(1_000);
    await edge.feed(color);
    await post("/api/v1/sdk/values", pro);
    await post("/ofrep/v1/evaluate/flags", { context: pro });
    expect(take()).toMatchObject([{ bulkAnswers: 2, flags: undefined }]);
  });
});

describe("given an organization that has used up its month", () => {
  it.each([
    ["the SDK's endpoints", () => poll()],
    ["a single flag", () => ask("/api/v1/sdk/evaluate?key=alpha")],
    ["a stream", () => ask("/api/v1/sdk/stream")],
    ["OFREP", ofrepAll],
    ["a single flag by OFREP", () => post("/ofrep/v1/evaluate/flags/alpha", {})],
  ])(
    "answers %s with 429, readable for any page, with a short Retry-After, and does not count it",
    async (_name, send) => {
      await start(0);
      const { status, body, headers } = await send();
      expect(status).toBe(429);
      expect(body.error?.code ?? body.errorCode).toMatch(/^(RATE_001|GENERAL)$/);
      const [, seconds] = /^"monthly";r=0;t=(\d+)$/.exec(headers.get("ratelimit") ?? "") ?? [];
      expect(Number(seconds)).toBeLessThanOrEqual(31 * 24 * 60 * 60);
      expect(Number(headers.get("retry-after"))).toBe(Math.min(Number(seconds), 600));
      expect(headers.get("ratelimit-policy")).toMatch(/^"monthly";q=0;w=2678400$/);
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(requests()).toBe(0);
    },
  );

  it("answers a revoked key with 401", async () => {
    await start(0);
    await edge.feed(revokedKey(client.keyId));
    expect((await poll()).status).toBe(401);
  });

  it("applies a larger or smaller plan immediately", async () => {
    await start(2);
    const statuses = async (times: number) => {
      const seen: number[] = [];
      for (let time = 0; time < times; time += 1) seen.push((await poll()).status);
      return seen;
    };
    expect(await statuses(3)).toEqual([200, 200, 429]);
    await edge.feed(plansEntry(2, { requests_per_month: 4 }));
    expect(await statuses(3)).toEqual([200, 200, 429]);
    await edge.feed(plansEntry(3, { requests_per_month: null }));
    const free = await poll();
    expect(free.status).toBe(200);
    expect(free.headers.has("ratelimit")).toBe(false);
    await edge.feed(plansEntry(4, { requests_per_month: 3 }));
    expect(await statuses(1)).toEqual([429]);
  });

  it("receives the requests of other edges from usage-metering", async () => {
    await start(1_000);
    expect((await poll()).status).toBe(200);
    edge.counting?.applyQuota({ organization_id: id("org"), month, requests: 1_000 });
    expect((await poll()).status).toBe(429);
  });
});

// Slots without NATS. Other tests cover NATS.
const slots: StreamSlots = {
  take: () => streamLimitReached(25),
  release: () => undefined,
  knowsOthers: () => true,
};

const streams: [string, () => Promise<Called>][] = [
  ["of values", () => ask("/api/v1/sdk/stream")],
  ["of OpenFeature", async () => call(await streamAddress(edge, client.text))],
];

describe("given an organization whose streams are all open", () => {
  it.each(streams)(
    "reports the month after the slots if a stream %s is rejected",
    async (_name, open) => {
      await start(1_000, { slots, streamTokenSecret: tokenSecret });
      const { status, headers } = await open();
      expect(status).toBe(429);
      expect(headers.get("ratelimit-policy")).toMatch(
        /^"sse";q=25;qu="concurrent-requests", "monthly";q=1000;w=\d+$/,
      );
      expect(headers.get("ratelimit")).toMatch(/^"sse";r=0, "monthly";r=\d+;t=\d+$/);
      expect(headers.has("retry-after")).toBe(false);
    },
  );

  it.each(streams)("reports the key's limit if a stream %s is rejected", async (_name, open) => {
    await start(1_000, { slots, streamTokenSecret: tokenSecret, requestsPerSecond: 5 });
    const { headers } = await open();
    expect(headers.get("ratelimit-policy")).toMatch(
      /^"sse";[^,]+, "requests";[^,]+, "monthly";[^,]+$/,
    );
    expect(headers.get("ratelimit")).toMatch(
      /^"sse";r=0, "requests";r=\d;[^,]+, "monthly";r=[^,]+$/,
    );
  });

  it.each(streams)(
    "reports only the limit of the slots if nothing else is limited: %s",
    async (_name, open) => {
      await start(null, { slots, streamTokenSecret: tokenSecret });
      const { headers } = await open();
      expect(headers.get("ratelimit-policy")).toBe('"sse";q=25;qu="concurrent-requests"');
      expect(headers.get("ratelimit")).toBe('"sse";r=0');
    },
  );
});

describe("given a limit of the key and a limit of the month", () => {
  it("reports both in one list", async () => {
    await start(1_000, { requestsPerSecond: 5 });
    const { headers } = await poll();
    expect(headers.get("ratelimit-policy")).toMatch(/^"requests";q=5;w=1, "monthly";q=1000;w=\d+$/);
    expect(headers.get("ratelimit")).toMatch(/^"requests";r=4;t=1, "monthly";r=999;t=\d+$/);
  });

  it("reports both if the key exceeds its rate, and does not count the request", async () => {
    await start(1_000, { requestsPerSecond: 0.001 });
    await poll();
    const { status, headers } = await poll();
    expect(status).toBe(429);
    expect(headers.get("ratelimit-policy")).toMatch(/^"requests";q=1;w=1000, "monthly";q=1000;/);
    expect(headers.get("ratelimit")).toMatch(/^"requests";r=0;t=\d+, "monthly";r=\d+;t=\d+$/);
    expect(requests()).toBe(1);
  });

  it("reports both if the month is used up", async () => {
    await start(0, { requestsPerSecond: 5 });
    const { status, headers } = await poll();
    expect(status).toBe(429);
    expect(headers.get("ratelimit")).toMatch(/^"monthly";r=0;t=\d+, "requests";r=4;t=1$/);
  });

  it("reports only the key's limit if the month has no limit", async () => {
    await start(null, { requestsPerSecond: 5 });
    const { headers } = await poll();
    expect(headers.get("ratelimit-policy")).toBe('"requests";q=5;w=1');
    expect(headers.get("ratelimit")).toBe('"requests";r=4;t=1');
  });
});

describe("a key is used", () => {
  const usedKeys = () => {
    const keys = [...(edge.counting?.take()?.keys ?? [])];
    return keys.filter(([, { usedAtMs }]) => usedAtMs > 0).map(([keyId]) => keyId);
  };
  const open = () => ask("/api/v1/sdk/stream");

  it.each([
    { by: "no limit", status: 200, limit: 1_000, requestsPerSecond: 5, send: () => poll() },
    {
      by: "the endpoint",
      status: 404,
      limit: 1_000,
      requestsPerSecond: 5,
      send: () => ask("/api/v1/sdk/evaluate?key=no"),
    },
    { by: "the month", status: 429, limit: 0, requestsPerSecond: 5, send: () => poll() },
    { by: "the slots for streams", status: 429, limit: 1_000, requestsPerSecond: 5, send: open },
    {
      by: "the key's rate",
      status: 429,
      limit: 1_000,
      requestsPerSecond: 0.001,
      send: () => poll(),
    },
  ])("if a request with it is rejected by $by ($status)", async (given) => {
    const { limit, requestsPerSecond, send } = given;
    await start(limit, { slots, requestsPerSecond });
    if (requestsPerSecond < 1) expect((await poll()).status).toBe(200);
    usedKeys();
    expect((await send()).status).toBe(given.status);
    expect(usedKeys()).toEqual([client.keyId]);
  });

  it("not if a request has another key", async () => {
    await start(1_000);
    expect((await call(`${edge.url}/api/v1/sdk/flags`, { key: apiKey().text })).status).toBe(401);
    expect(usedKeys()).toEqual([]);
  });
});

function take(): readonly EnvironmentHour[] {
  return edge.counting?.take()?.environments ?? [];
}

function requests(): number {
  return take()
    .flatMap((environment) => Object.values(environment.requests))
    .reduce((sum, count) => sum + count, 0);
}
