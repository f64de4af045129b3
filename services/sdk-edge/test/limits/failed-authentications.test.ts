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
])("given an address that floods $endpoint with keys that do not work", (asked) => {
  beforeEach(async () => {
    edge = await startEdgeServer([key.entry, flagEntry()]);
  });

  it("is told to wait, and for how long", async () => {
    expect((await ask(asked)).statusCode).toBe(401);
    const { headers } = await requestUntilRejected(asked);
    expect(Number(headers["retry-after"])).toBeGreaterThan(0);
    expect(headers["ratelimit-policy"]).toBe('"requests";q=1000;w=10');
    expect(headers.ratelimit).toMatch(/^"requests";r=0;t=\d+$/);
  });

  it("is answered as ever with a key that works, and may go on after a while", async () => {
    await requestUntilRejected(asked);
    expect((await call(`${edge.url}/api/v1/sdk/flags`, { key: key.text })).status).toBe(200);
    edge.passTime(60_000);
    expect((await ask(asked)).statusCode).toBe(401);
  });
});

describe("given a flood that a proxy passes on", () => {
  const asked = { method: "GET", path: "/api/v1/sdk/flags" };

  it("refuses who sent it, if the proxy is believed, and nobody else", async () => {
    edge = await startEdgeServer([key.entry, flagEntry()], proxy);
    await requestUntilRejected({ ...asked, from: "192.0.2.1" });
    expect((await ask({ ...asked, from: "192.0.2.2" })).statusCode).toBe(401);
  });

  it("believes nobody else who says to be passing it on", async () => {
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

  it("names the limit of the address, and the variables that raise it", async () => {
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
  ])("answers %s 403 to the operator's token in %s, however often", async (path, header) => {
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

/** So many come back to an address while a slow machine asks that more than one burst is needed. */
const maxBunches = 200;

async function requestUntilRejected(asked: Asked): Promise<IncomingMessage> {
  for (let bunch = 0; bunch < maxBunches; bunch += 1) {
    const answers = await Promise.all(Array.from({ length: 100 }, () => ask(asked)));
    const rejected = answers.find(({ statusCode }) => statusCode === 429);
    if (rejected !== undefined) return rejected;
  }
  throw new Error("Nobody was refused");
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
