import { type IncomingMessage, request } from "node:http";
import { digestOfToken } from "@halyard/api-keys";
import { call } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

const key = apiKey();
const wrong = apiKey();
const proxy = { trustedProxies: ["127.0.0.1"] };
let edge: EdgeServer;
afterEach(() => edge.stop());

describe.each([
  { endpoint: "the flags", method: "GET", path: "/api/v1/sdk/flags" },
  { endpoint: "OFREP", method: "POST", path: "/ofrep/v1/evaluate/flags" },
])("given an address that floods $endpoint with invalid keys", (asked) => {
  beforeEach(async () => {
    edge = await startEdgeServer([key.entry, flagEntry()]);
  });

  it("receives 429 with the time to wait", async () => {
    expect((await ask(asked)).statusCode).toBe(401);
    const { headers } = await requestUntilRejected(asked);
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    expect(headers["ratelimit-policy"]).toBe('"requests";q=1000;w=10');
    expect(headers.ratelimit).toMatch(/^"requests";r=0;t=\d+$/);
  });

  it("is still served with a valid key, and may send invalid keys again later", async () => {
    await requestUntilRejected(asked);
    expect((await call(`${edge.url}/api/v1/sdk/flags`, { key: key.text })).status).toBe(200);
    edge.passTime(60_000);
    expect((await ask(asked)).statusCode).toBe(401);
  });
});

describe("given a flood through a proxy", () => {
  const asked = { method: "GET", path: "/api/v1/sdk/flags" };

  it("limits only the sender's address if the proxy is trusted", async () => {
    edge = await startEdgeServer([key.entry, flagEntry()], proxy);
    await requestUntilRejected({ ...asked, from: "192.0.2.1" });
    expect((await ask({ ...asked, from: "192.0.2.2" })).statusCode).toBe(401);
  });

  it("ignores forwarded addresses if the proxy is not trusted", async () => {
    edge = await startEdgeServer([key.entry, flagEntry()]);
    let sent = 0;
    await requestUntilRejected({ ...asked, from: () => `192.0.2.${(sent++ % 200) + 1}` });
    expect(sent).toBeGreaterThan(1_000);
  });
});

describe("given an edge with a configured rate and the digest of the operator's token", () => {
  beforeEach(async () => {
    edge = await startEdgeServer([key.entry, flagEntry()], {
      invalidKeyRate: { requestsPerSecond: 0.5, burst: 2 },
      operatorTokenDigest: digestOfToken("the operator"),
    });
  });

  it("states the limit of the address and the variables that raise it", async () => {
    const poll = () => call(`${edge.url}/api/v1/sdk/flags`, { key: wrong.text });
    expect([(await poll()).status, (await poll()).status]).toEqual([401, 401]);
    expect((await poll()).body.error).toMatchObject({
      code: "RATE_001",
      message:
        "Too many invalid keys from this address. The limit of an address is 0.5 requests a second, with bursts of 2, on each edge. The operator raises it with INVALID_KEYS_PER_SECOND and INVALID_KEYS_BURST.",
    });
  });

  it.each([
    ["/api/v1/sdk/flags", "Authorization"],
    ["/api/v1/sdk/evaluate?key=a", "Authorization"],
    ["/api/v1/sdk/stream", "Authorization"],
    ["/ofrep/v1/evaluate/flags", "Authorization"],
    ["/ofrep/v1/evaluate/flags/a", "X-API-Key"],
  ])("always answers %s with 403 for the operator's token in %s", async (path, header) => {
    const method = path.startsWith("/ofrep") ? "POST" : "GET";
    const headers = {
      [header]: header === "X-API-Key" ? "the operator" : "Bearer the operator",
      "content-type": "application/json",
    };
    for (let time = 0; time < 4; time += 1)
      expect((await call(edge.url + path, { method, headers })).status).toBe(403);
  });
});

type Asked = { method: string; path: string; from?: string | (() => string) };

/** Maximum number of bursts. The bucket refills while a slow machine sends, so that one burst may not exhaust it. */
const maxBursts = 200;

async function requestUntilRejected(asked: Asked): Promise<IncomingMessage> {
  for (let burst = 0; burst < maxBursts; burst += 1) {
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(asked)));
    const rejected = answers.find(({ statusCode }) => statusCode === 429);
    if (rejected !== undefined) return rejected;
  }
  throw new Error("No request was rejected.");
}

function ask({ method, path, from }: Asked): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const forwarded = typeof from === "function" ? from() : from;
    const headers = {
      authorization: `Bearer ${wrong.text}`,
      ...(forwarded === undefined ? {} : { "x-forwarded-for": forwarded }),
    };
    const asking = request(`${edge.url}${path}`, { method, headers }, (response) => {
      response.resume();
      response.once("end", () => resolve(response));
    });
    asking.once("error", reject);
    asking.end();
  });
}
