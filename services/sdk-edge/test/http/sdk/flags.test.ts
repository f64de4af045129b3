import { call } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

const client = apiKey();
const server = apiKey({ key_kind: "server" });
const otherEnvApiKey = apiKey({ environment_id: id("env", 2) });
const absent = apiKey();
const manyFlags = apiKey({ environment_id: id("env", 3) });
const longKeys = Array.from({ length: 200 }, (_, number) => `${"k".repeat(250)}-${number}`);
const flags = [
  flagEntry({ flag_id: id("flag", 1), key: "alpha", enabled: true }),
  flagEntry({ flag_id: id("flag", 2), key: "beta", enabled: false }),
];
const values = { flags: { alpha: true, beta: false } };

let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer([
    ...flags,
    ...longKeys.map((key, number) =>
      flagEntry({ flag_id: id("flag", 10 + number), key, environment_id: id("env", 3) }),
    ),
    ...[client.entry, server.entry, otherEnvApiKey.entry, manyFlags.entry],
  ]);
});
afterAll(() => edge.stop());

/** Requests with the same response: one directly by the request pipeline, the others by the framework's routes. */
const methods = [
  { way: "GET", path: "/api/v1/sdk/flags", options: {} },
  { way: "GET with a query", path: "/api/v1/sdk/flags?user_id=u1", options: {} },
  { way: "POST", path: "/api/v1/sdk/flags", options: { method: "POST", body: { user_id: "u1" } } },
  { way: "POST without a body", path: "/api/v1/sdk/flags", options: { method: "POST" } },
];

describe.each(methods)("given a request for all flags by $way", ({ path, options }) => {
  const ask = (key: string | undefined, headers: Record<string, string> = {}) =>
    call(edge.url + path, { ...options, headers, ...(key === undefined ? {} : { key }) });

  it.each([
    { kind: "client", key: client.text },
    { kind: "server", key: server.text },
  ])("answers a $kind key with the values of its environment", async ({ key }) => {
    const { status, body, headers } = await ask(key);
    expect(status).toBe(200);
    expect(body).toEqual(values);
    expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(headers.get("cache-control")).toBe("private, no-cache");
    expect(headers.get("vary")).toContain("Authorization");
    expect(headers.get("etag")).toMatch(/^"[^"]+"$/);
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("x-request-id")).toBeTruthy();
  });

  it("returns an empty object for an environment without flags", async () => {
    expect((await ask(otherEnvApiKey.text)).body).toEqual({ flags: {} });
  });

  it("returns the request id of the client", async () => {
    const { headers } = await ask(client.text, { "x-request-id": "from-the-caller" });
    expect(headers.get("x-request-id")).toBe("from-the-caller");
  });

  it("answers 304 without a body if the client has these values", async () => {
    const etag = (await ask(client.text)).headers.get("etag") ?? "";
    for (const ifNoneMatch of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const { status, body, headers } = await ask(client.text, { "if-none-match": ifNoneMatch });
      expect(status).toBe(304);
      expect(body).toBeUndefined();
      expect(headers.get("etag")).toBe(etag);
      expect(headers.get("cache-control")).toBe("private, no-cache");
      expect(headers.get("access-control-expose-headers")).toContain("ETag");
    }
  });

  it("answers 200 if the client has other values", async () => {
    expect((await ask(client.text, { "if-none-match": '"other"' })).status).toBe(200);
  });

  it.each([
    ["no key", undefined],
    ["a malformed key", "nonsense"],
    ["an unknown key", absent.text],
    ["a key with a wrong secret", `${client.text.slice(0, -4)}AAAA`],
    ["a key with the other kind's prefix", client.text.replace("hc_", "hs_")],
  ])("rejects %s, with headers that let a page read it", async (_name, key) => {
    const { status, body, headers } = await ask(key);
    expect(status).toBe(401);
    expect(body.error.code).toBe("AUTH_001");
    expect(headers.get("www-authenticate")).toBe("Bearer");
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("access-control-expose-headers")).toContain("X-Request-Id");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
  });
});

it("answers consecutive requests with a long body", async () => {
  const expected = { flags: Object.fromEntries(longKeys.map((key) => [key, false])) };
  for (const options of [{}, {}, { method: "POST", body: { user_id: "u1" } }]) {
    const { status, body } = await call(`${edge.url}/api/v1/sdk/flags`, {
      ...options,
      key: manyFlags.text,
    });
    expect(status).toBe(200);
    expect(body).toEqual(expected);
  }
});

describe("given HEAD", () => {
  const ask = async (method: string, path: string, options: { key?: string; etag?: string } = {}) =>
    fetch(edge.url + path, {
      method,
      headers: {
        authorization: `Bearer ${options.key ?? client.text}`,
        "x-request-id": "same",
        ...(options.etag === undefined ? {} : { "if-none-match": options.etag }),
      },
    });

  it.each([
    ["all flags", "/api/v1/sdk/flags", {}, 200],
    ["all flags in a long body", "/api/v1/sdk/flags", { key: manyFlags.text }, 200],
    ["all flags that have not changed", "/api/v1/sdk/flags", { etag: "*" }, 304],
    ["one flag", "/api/v1/sdk/evaluate?key=alpha&user_id=u1", {}, 200],
    ["an unknown flag", "/api/v1/sdk/evaluate?key=gamma", {}, 404],
    ["an invalid query", "/api/v1/sdk/evaluate", {}, 400],
    ["an unknown key", "/api/v1/sdk/flags", { key: absent.text }, 401],
  ])("answers %s with the headers of GET and no body", async (_name, path, options, status) => {
    const got = await ask("GET", path, options);
    const answered = await ask("HEAD", path, options);
    const comparable = ({ headers }: Response) =>
      [...headers].filter(([name]) => !/^(?:date|connection|keep-alive)$/.test(name));
    expect(answered.status).toBe(status);
    expect(got.status).toBe(status);
    expect(comparable(answered)).toEqual(comparable(got));
    expect(answered.headers.has("content-length")).toBe(status !== 304);
    expect(await answered.text()).toBe("");
  });

  it("answers 404 for a stream", async () => {
    for (const path of ["/api/v1/sdk/stream", "/ofrep/v1/stream"])
      expect((await ask("HEAD", path)).status).toBe(404);
  });
});

describe("given a request body", () => {
  const post = (body: string | Uint8Array<ArrayBuffer>, contentType = "application/json") =>
    fetch(`${edge.url}/api/v1/sdk/flags`, {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${client.text}`, "content-type": contentType },
    });

  it.each([
    ["any attributes", '{"user_id":"u1","anything":["goes",1,true]}', 200],
    ["an attribute that is an object", '{"user_id":"u1","anything":{"goes":1}}', 400],
    ["64 KiB", padded(64 * 1024), 200],
    ["one byte more than 64 KiB", padded(64 * 1024 + 1), 413],
    ["broken JSON", '{"user_id":', 400],
    ["a JSON array", '["u1"]', 400],
    ["invalid UTF-8", new Uint8Array([0x22, 0xff, 0x22]), 400],
  ])("answers %s with %s", async (_name, body, status) => {
    expect((await post(body)).status).toBe(status);
  });

  it("answers a body that is not JSON with 415", async () => {
    expect((await post("user_id=u1", "application/x-www-form-urlencoded")).status).toBe(415);
  });

  it("logs neither the body nor the query", async () => {
    await post('{"user_id":"somebody-special"}');
    await post('{"user_id":"somebody-special"');
    await call(`${edge.url}/api/v1/sdk/flags?user_id=somebody-special`, { key: client.text });
    expect(edge.log()).not.toContain("somebody-special");
  });
});

describe("given a change", () => {
  it("returns the new values with another tag from then on", async () => {
    const ask = () => call(`${edge.url}/api/v1/sdk/flags`, { key: client.text });
    const before = await ask();
    await edge.feed(flagEntry({ flag_id: id("flag", 2), key: "beta", enabled: true, version: 2 }));
    const after = await ask();
    expect(after.body).toEqual({ flags: { alpha: true, beta: true } });
    expect(after.headers.get("etag")).not.toBe(before.headers.get("etag"));
  });
});

function padded(bytes: number): string {
  const frame = '{"padding":""}';
  return `{"padding":"${"x".repeat(bytes - frame.length)}"}`;
}
