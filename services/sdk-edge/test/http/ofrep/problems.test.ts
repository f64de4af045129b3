import { compileCheck, ErrorBody, OfrepError, OfrepFlagError } from "@halyard/contracts";
import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { askAll, askOne, tokenSecret } from "./asking.ts";

const key = apiKey();
const mark = "not-to-be-repeated";
let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer([key.entry, flagEntry()], { streamTokenSecret: tokenSecret });
});
afterAll(() => edge.stop());

const isFlagError = compileCheck(OfrepFlagError);
const isBulkError = compileCheck(OfrepError);
const isOurError = compileCheck(ErrorBody);
const isOfrepError = (body: unknown) =>
  "key" in (body as object) ? isFlagError(body) : isBulkError(body);

async function send(path: string, options: { body?: string; headers?: Record<string, string> }) {
  const response = await fetch(`${edge.url}/ofrep/v1/evaluate/${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key.text}`,
      "content-type": "application/json",
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: options.body }),
  });
  const text = await response.text();
  expect(text).not.toContain(mark);
  expect(response.headers.get("access-control-allow-origin")).toBe("*");
  return { status: response.status, body: JSON.parse(text), headers: response.headers };
}

const wrong: [string, number, string, { body?: string; headers?: Record<string, string> }][] = [
  ["a body that is not JSON", 400, "PARSE_ERROR", { body: `{"context": ${mark}` }],
  ["a body that is an array", 400, "PARSE_ERROR", { body: `["${mark}"]` }],
  ["no body", 400, "PARSE_ERROR", {}],
  ["a body that is a single letter", 400, "PARSE_ERROR", { body: "\u00ff" }],
  ["a context that is a text", 400, "INVALID_CONTEXT", { body: `{"context":"${mark}"}` }],
  ["a context that is a list", 400, "INVALID_CONTEXT", { body: `{"context":["${mark}"]}` }],
  [
    "an invalid targeting key",
    400,
    "INVALID_CONTEXT",
    { body: `{"context":{"targetingKey":{"${mark}":1}}}` },
  ],
  [
    "a body that is too large",
    413,
    "GENERAL",
    { body: JSON.stringify({ context: { mark: mark.repeat(5_000) } }) },
  ],
  [
    "a body of another media type",
    415,
    "PARSE_ERROR",
    { body: mark, headers: { "content-type": "text/plain" } },
  ],
];

describe("given an invalid request for all flags", () => {
  it.each(wrong)("rejects %s with %d %s like OFREP", async (_what, status, code, options) => {
    const answer = await send("flags", options);
    expect(answer.status).toBe(status);
    expect(answer.body).toEqual({ errorCode: code, errorDetails: expect.any(String) });
    expect(isBulkError(answer.body)).toMatchObject({ ok: true });
  });
});

describe("given an invalid request for one flag", () => {
  it.each(wrong)(
    "rejects %s with %d %s and the flag's key",
    async (_what, status, code, options) => {
      const answer = await send("flags/checkout", options);
      expect(answer.status).toBe(status);
      expect(answer.body).toEqual({
        key: "checkout",
        errorCode: code,
        errorDetails: expect.any(String),
      });
      expect(isFlagError(answer.body)).toMatchObject({ ok: true });
    },
  );

  it.each([
    ["unknown", "unknown"],
    ["__proto__", "__proto__"],
    ["a%2Fb", "a/b"],
    ["a/b", "a/b"],
    ["a/", "a/"],
    ["", ""],
    ["?explain=true", ""],
    ["%C3%BC", "\u00fc"],
    ["%ff", "%ff"],
    ["a%2F%ff", "a%2F%ff"],
    ["a%252F%25ff", "a%2F%ff"],
    ["constructor", "constructor"],
  ])("returns FLAG_NOT_FOUND for %s", async (path, flagKey) => {
    const { status, body } = await askOne(edge, key.text, path);
    expect(status).toBe(404);
    expect(body).toEqual({
      key: flagKey,
      errorCode: "FLAG_NOT_FOUND",
      errorDetails: "There is no flag with this key",
    });
    expect(isFlagError(body)).toMatchObject({ ok: true });
  });
});

describe("given a path below /ofrep/v1/ without an endpoint", () => {
  it.each([
    ["POST", "nothing", {}],
    ["GET", "evaluate/flags", {}],
    ["GET", "evaluate/flags/a/b", { key: "a/b" }],
    ["DELETE", "evaluate/flags/checkout", { key: "checkout" }],
    ["POST", "stream", {}],
    ["OPTIONS", "", {}],
  ])("answers 404 in OFREP's format (%s %s)", async (method, path, about) => {
    const { status, body, headers } = await call(`${edge.url}/ofrep/v1/${path}`, { method });
    expect(status).toBe(404);
    expect(body).toEqual({ ...about, errorCode: "GENERAL", errorDetails: expect.any(String) });
    expect(headers.get("access-control-allow-origin")).toBe("*");
  });

  it("answers other paths below /ofrep/ in the API's format", async () => {
    for (const path of ["/ofrep/v2/evaluate/flags", "/ofrep/v1"])
      expect((await call(edge.url + path)).body.error.code).toBe("NOT_FOUND_001");
  });
});

describe("given an invalid key", () => {
  it.each(["flags", "flags/checkout"])("answers 401 in OFREP's format (%s)", async (path) => {
    for (const headers of [
      { authorization: `Bearer ${apiKey().text}` },
      { authorization: `Bearer ${apiKey().text}`, "x-api-key": key.text },
      { authorization: "Basic abc", "x-api-key": apiKey().text },
      { authorization: "", "x-api-key": apiKey().text },
    ]) {
      const answer = await send(path, { body: "{}", headers });
      expect(answer.status).toBe(401);
      expect(answer.body).toMatchObject({ errorCode: "GENERAL" });
      const isError = path === "flags" ? isBulkError : isFlagError;
      expect(isError(answer.body)).toMatchObject({ ok: true });
      expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    }
  });

  it("ignores another scheme beside a valid X-API-Key", async () => {
    for (const authorization of ["Basic dTpw", "Digest username=u", ""]) {
      const headers = { authorization, "x-api-key": key.text };
      expect((await send("flags", { body: "{}", headers })).status).toBe(200);
    }
  });
});

describe("given the URL of a stream", () => {
  it("answers 400 to a repeated token, and 401 to an unknown one, in OFREP's format", async () => {
    for (const [query, status, errorCode] of [
      ["token=a&token=a", 400, "PARSE_ERROR"],
      ["token=a", 401, "GENERAL"],
      ["", 401, "GENERAL"],
    ] as const) {
      const answered = await call(`${edge.url}/ofrep/v1/stream?${query}`);
      expect(answered.status).toBe(status);
      expect(answered.body).toEqual({ errorCode, errorDetails: expect.any(String) });
    }
  });
});

describe("given an edge that has not received the flags yet", () => {
  it("answers 503 in OFREP's format", async () => {
    const empty = await startEdgeServer();
    const answer = await askAll(empty, key.text);
    expect(answer.status).toBe(503);
    expect(isBulkError(answer.body)).toMatchObject({ ok: true });
    expect(answer.headers.get("retry-after")).toBe("1");
    await empty.stop();
  });
});

describe("given a key that exceeds its rate limit", () => {
  it("is rejected by every endpoint, with the rate limit fields, and counted once", async () => {
    const limited = await startEdgeServer([key.entry, flagEntry()], { requestsPerSecond: 2 });
    const paths = [
      ["POST", "/ofrep/v1/evaluate/flags"],
      ["POST", "/ofrep/v1/evaluate/flags/checkout"],
      ["GET", "/api/v1/sdk/flags"],
      ["GET", "/api/v1/sdk/evaluate?key=checkout"],
      ["GET", "/api/v1/sdk/stream"],
    ] as const;
    const ask = ([method, path]: readonly [string, string]) =>
      call(limited.url + path, {
        method,
        key: key.text,
        ...(method === "POST" ? { body: {} } : {}),
      });
    expect((await ask(paths[0])).status).toBe(200);
    expect((await ask(paths[1])).status).toBe(200);
    for (const path of paths) {
      const { status, headers, body } = await ask(path);
      expect([path[1], status]).toEqual([path[1], 429]);
      const isError = path[1].startsWith("/api/") ? isOurError : isOfrepError;
      expect(isError(body)).toMatchObject({ ok: true });
      expect(JSON.stringify(body)).toContain(
        "Too many requests with this key. The limit of a key is 2 requests a second, with bursts of 2, on each edge. The operator raises it with SDK_REQUESTS_PER_SECOND.",
      );
      expect(headers.get("retry-after")).toBe("1");
      expect(headers.get("ratelimit-policy")).toBe('"requests";q=2;w=1');
      expect(headers.get("ratelimit")).toBe('"requests";r=0;t=1');
      expect(headers.get("access-control-expose-headers")).toContain("RateLimit-Policy");
    }
    limited.passTime(1_000);
    expect((await ask(paths[0])).status).toBe(200);
    expect(await limited.metric('sdk_responses_total{endpoint="ofrep_flags",status="429"')).toBe(1);
    await limited.stop();
  });
});
